"""The section of the configuration that makes monitors one fleet.

Sections on the end of a process, and on monitors that join the spans of one trace that came to several of them.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from .section import GIVEN_AS_LIST, Section
from .sources import BaseUrl, OwnHeaders, sent_headers
from .units import Duration, PositiveDuration, parse_duration

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


def _is_database(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    try:
        parts = urlsplit(text)
        parse_qsl(parts.query, strict_parsing=bool(parts.query))
        named = parts.scheme in ("postgresql", "postgres") and text == text.strip() and "#" not in text
        stray = parts.netloc.count("@") > 1 or "@" in parts.path
    except ValueError:
        named = stray = False
    if named and stray:  # libpq would take a part of the password for the host, and name it
        raise ValueError("must have one '@', before the host: write those of user and password as %40, and '/' as %2F")
    if not named:
        raise ValueError("must be an address such as postgresql://user:password@host:5432/database?sslmode=verify-full")
    return url


class ArchiveSection(Section):
    """Results of all monitors in the fleet's database.

    Quotations are kept where `api.contents` is `always`; kinds in `evaluators.judge.redact` are replaced in them.
    """

    keep: PositiveDuration = parse_duration("30d")
    """how long results are kept there"""


class FleetSection(Section):
    """Monitors that act as one, by a PostgreSQL that they share (extra `fleet`).

    Spans and working state stay in each monitor's store. While the database is away each monitor goes on alone.
    """

    database: Annotated[SecretStr, AfterValidator(_is_database)]
    """address of the PostgreSQL (13 or newer), `postgresql://…`, as `${NAME}`; PgBouncer may stand before it"""
    schema_name: str = Field(default="sidejudge", pattern=r"^[a-z_][a-z0-9_]{0,62}$")
    """schema that the tables are in"""
    identity: str | None = Field(default=None, pattern=_NAME)
    """name of the whole fleet, the same on each of its monitors, such as `production`: while one of them is present, a
    monitor with another identity, or with none, is refused and goes on alone (default: none; then every monitor with
    the address belongs to the fleet)
    """
    name: str | None = Field(default=None, pattern=_NAME)
    """name of this monitor in the fleet, its own (default: the host's, and four characters that the store keeps)"""
    every: PositiveDuration = parse_duration("15s")
    """time between two rounds, in which a monitor connects, reads and writes what is shared, and leaves"""
    timeout: PositiveDuration = parse_duration("5s")
    """of one transaction, with connecting"""
    lease: PositiveDuration = parse_duration("1m")
    """how long an exclusive task stays with a monitor that is gone: at least twice `every` and `timeout` together"""
    archive: ArchiveSection | None = ArchiveSection()
    """results of all monitors, kept in the database; `null`: they are not"""
    migrate: bool = True
    """whether a start brings the schema forward; false where `sidejudge fleet migrate` does, under a role that may"""

    @model_validator(mode="after")
    def _lease_outlives_rounds(self) -> FleetSection:
        least_s = 2 * (self.every.seconds + self.timeout.seconds)
        if self.lease.seconds < least_s:
            raise ValueError(
                f"lease must be at least twice every and timeout together ({least_s:g}s), got {self.lease}"
            )
        return self


def _is_not_empty(addresses: tuple[str, ...]) -> tuple[str, ...]:
    if not addresses:
        raise ValueError("must name at least one address")
    return addresses


class PeersSection(Section):
    """The monitors among which a Collector divides traces by their ids.

    When their number changes, traces that are under way come to two of them. Then a monitor asks the others for the
    missing spans before it judges such a trace.
    """

    addresses: Annotated[tuple[BaseUrl, ...], AfterValidator(_is_not_empty), GIVEN_AS_LIST]
    """their OTLP/HTTP addresses, possibly including this monitor's own; a name stands for all addresses that it
    resolves to, as with a headless Service (with https for itself)
    """
    every: PositiveDuration = parse_duration("5s")
    """how often the names are resolved and the monitors are contacted"""
    settle: PositiveDuration = parse_duration("15s")
    """how long after a change senders may still use the old set of monitors: at least twice the Collector's `interval`,
    plus the time for which it gathers traces
    """
    wait: PositiveDuration = parse_duration("30s")
    """how long a trace waits for a monitor that may hold spans of it and does not answer; then it is judged as
    incomplete"""
    headers: OwnHeaders = Field(default_factory=dict)
    """headers of requests to them, such as `Authorization`, as `${NAME}`"""

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers)


class DrainSection(Section):
    """The end after SIGTERM if the store is lost with the process: open traces are closed, judged and delivered first.

    Without this section unjudged traces stay in the store, and the next start judges them.
    """

    timeout: PositiveDuration = parse_duration("20s")
    """how long the end may take; some seconds less than the grace period of the Pod or container"""
    quiet: Duration = parse_duration("1s")
    """how long no request must have come before it ends; after half of `timeout` requests are refused"""
    to: BaseUrl | None = None
    """another monitor, or a Collector in front of several, that takes traces that cannot be judged in time
    (`/v1/traces` is appended); without it they are lost, and the last line of the log counts them
    """
    headers: OwnHeaders = Field(default_factory=dict)
    """headers of handovers, such as `Authorization`, as `${NAME}`"""

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request."""
        return sent_headers(self.headers)
