"""Sections on the end of a process, and on monitors that join the spans of one trace that came to several of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from .forward import BaseUrl, HeaderValue, _are_names
from .section import GIVEN_AS_LIST, Section
from .sources import sent_headers
from .units import Duration, PositiveDuration, parse_duration


def _is_not_empty(addresses: tuple[str, ...]) -> tuple[str, ...]:
    if not addresses:
        raise ValueError("must name at least one address")
    return addresses


class PeersSection(Section):
    """The monitors among which a Collector divides traces by their ids.

    When their number changes, traces that are under way come to two of them. Then a monitor asks the others for the
    missing spans before it judges such a trace.
    """

    addresses: Annotated[tuple[BaseUrl, ...], AfterValidator(_is_not_empty), GIVEN_AS_LIST] = Field(
        description="their OTLP/HTTP addresses, this monitor's own may be among them; a name stands for every address "
        "that it resolves to, as that of a headless Service does (with https for itself)",
    )
    every: PositiveDuration = Field(
        default=parse_duration("5s"), description="how often the names are resolved and the monitors are greeted"
    )
    settle: PositiveDuration = Field(
        default=parse_duration("15s"),
        description="how long after a change senders may still go by the old number of monitors: at least twice the "
        "Collector's `interval`, and what it gathers traces for",
    )
    wait: PositiveDuration = Field(
        default=parse_duration("30s"),
        description="how long a trace waits for a monitor that may hold spans of it and does not answer; then it is "
        "judged as incomplete",
    )
    headers: Annotated[Mapping[str, HeaderValue], AfterValidator(_are_names)] = Field(
        default_factory=dict, description="headers of what is sent to them, such as `Authorization`, as `${NAME}`"
    )

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers)


class DrainSection(Section):
    """What SIGTERM begins where the store goes with the process: open traces are closed, judged and delivered first.

    Without this section what is not judged stays in the store, and the next start judges it.
    """

    timeout: PositiveDuration = Field(
        default=parse_duration("20s"),
        description="how long the end may take; some seconds less than the grace period of the Pod or container",
    )
    quiet: Duration = Field(
        default=parse_duration("1s"),
        description="how long no request must have come before it ends; after half of `timeout` requests are refused",
    )
    to: BaseUrl | None = Field(
        default=None,
        description="another monitor, or a Collector in front of several, that takes what cannot be judged in time "
        "(`/v1/traces` is put after it); without it that is lost, and the last line of the log counts it",
    )
    headers: Annotated[Mapping[str, HeaderValue], AfterValidator(_are_names)] = Field(
        default_factory=dict, description="headers of what is handed over, such as `Authorization`, as `${NAME}`"
    )

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers)
