"""The section of the configuration on the end of a process whose store ends with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from .forward import BaseUrl, HeaderValue, _are_names
from .section import Section
from .sources import sent_headers
from .units import Duration, PositiveDuration, parse_duration


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
