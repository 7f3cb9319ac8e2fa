"""The section of the configuration that lets monitors join the spans of one trace that came to several of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from .forward import BaseUrl, HeaderValue, _are_names
from .section import GIVEN_AS_LIST, Section
from .sources import sent_headers
from .units import PositiveDuration, parse_duration


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
