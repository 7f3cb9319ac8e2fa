"""The section of the configuration that makes monitors one fleet."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from .section import Section
from .units import PositiveDuration, parse_duration

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

    Quotations are kept where `api.contents` is `always`; what `evaluators.judge.redact` names is replaced in them.
    """

    keep: PositiveDuration = Field(default=parse_duration("30d"), description="how long results are kept there")


class FleetSection(Section):
    """Monitors that speak with one voice, by a PostgreSQL that they share (extra `fleet`).

    Spans and working state stay in each monitor's store. While the database is away each monitor goes on alone.
    """

    database: Annotated[SecretStr, AfterValidator(_is_database)] = Field(
        description="address of the PostgreSQL (13 or newer), `postgresql://…`, as `${NAME}`; PgBouncer may stand "
        "before it"
    )
    schema_name: str = Field(
        default="sidejudge", pattern=r"^[a-z_][a-z0-9_]{0,62}$", description="schema that the tables are in"
    )
    identity: str | None = Field(
        default=None,
        pattern=_NAME,
        description="name of the whole fleet, the same on each of its monitors, such as `production`: while one of "
        "them is there, a monitor with another identity, or with none, is refused and goes on alone (default: of a "
        "fleet that has none, to which whoever has the address belongs)",
    )
    name: str | None = Field(
        default=None,
        pattern=_NAME,
        description="name of this monitor in the fleet, its own (default: the host's, and four characters that the "
        "store keeps)",
    )
    every: PositiveDuration = Field(
        default=parse_duration("15s"),
        description="time between two rounds, in which a monitor connects, reads and writes what is shared, and leaves",
    )
    timeout: PositiveDuration = Field(default=parse_duration("5s"), description="of one transaction, with connecting")
    lease: PositiveDuration = Field(
        default=parse_duration("1m"),
        description="how long what only one may do stays with a monitor that is gone: at least twice `every` "
        "and `timeout` together",
    )
    archive: ArchiveSection | None = Field(
        default=ArchiveSection(), description="results of all monitors, kept in the database; `null`: they are not"
    )
    migrate: bool = Field(
        default=True,
        description="whether a start brings the schema forward; false where `sidejudge fleet migrate` does, under a "
        "role that may",
    )

    @model_validator(mode="after")
    def _lease_outlives_rounds(self) -> FleetSection:
        least_s = 2 * (self.every.seconds + self.timeout.seconds)
        if self.lease.seconds < least_s:
            raise ValueError(
                f"lease must be at least twice every and timeout together ({least_s:g}s), got {self.lease}"
            )
        return self
