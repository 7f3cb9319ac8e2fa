"""Durations, sizes and addresses as people write them: ``10m``, ``64MiB``, ``0.0.0.0:4318``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import core_schema

_NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_MOST_DAYS = 36_500
"""Days in a century: from now, and back from now, times of 64 bits in nanoseconds reach little further."""


def _as_text(parse: Callable[[object], object]) -> core_schema.CoreSchema:
    """Validated by ``parse``, written back as ``str`` does."""
    return core_schema.no_info_plain_validator_function(
        parse, serialization=core_schema.to_string_ser_schema(when_used="always")
    )


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time, whole nanoseconds, not negative. ``str`` writes it as the configuration would."""

    ns: int

    @property
    def seconds(self) -> float:
        return self.ns / 1e9

    def __str__(self) -> str:
        left, text = self.ns, ""
        for unit in ("d", "h", "m", "s", "ms"):
            number, left = divmod(left, _NS[unit])
            text += f"{number}{unit}" if number else ""
        return text or "0s"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> core_schema.CoreSchema:
        return _as_text(bounded_duration)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"type": "string", "pattern": r"^(\d+(\.\d+)?(ms|s|m|h|d))+$", "examples": ["15s", "10m", "1h"]}


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: ``host`` as written (IPv6 without its brackets) and ``port`` in 0–65535 (0: any free one)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def meets(self, other: Address) -> bool:
        """Whether not both can be listened on at once.

        >>> Address("0.0.0.0", 80).meets(Address("127.0.0.1", 80)), Address("a", 0).meets(Address("a", 0))
        (True, False)
        """
        everywhere = {"0.0.0.0", "::"}  # noqa: S104  # nothing is bound here
        return 0 != self.port == other.port and (self.host == other.host or bool(everywhere & {self.host, other.host}))

    @property
    def local(self) -> Address:
        """The address at which this machine reaches it: the loopback one, if it listens on all interfaces."""
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nothing is bound here
        return Address(loopback.get(self.host, self.host), self.port)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> core_schema.CoreSchema:
        return _as_text(parse_address)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: object, _handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"type": "string", "pattern": r"^.*:\d+$", "examples": ["0.0.0.0:4318"]}


def parse_duration(text: object) -> Duration:
    """Read ``500ms``, ``15s``, ``10m``, ``1h30m``, ``7d``. A bare number is refused: it has no unit."""
    if isinstance(text, Duration):
        return text
    if isinstance(text, int | float) and not isinstance(text, bool):
        number = f"{text:g}" if abs(text) < 1e15 else "15"
        raise ValueError(f"must have a unit, such as {number}s or {number}m")  # noqa: TRY004  # pydantic collects these
    parts = _DURATION.findall(text) if isinstance(text, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"must be a duration such as 500ms, 15s, 10m, 1h or 7d, got {text!r}")
    return Duration(int(sum(Decimal(number) * _NS[unit] for number, unit in parts)))


def parse_span(text: str) -> int:
    """How far back to look, in ns; more than a century is one: the integers of a store reach little further."""
    return min(parse_duration(text).ns, _MOST_DAYS * _NS["d"])


def bounded_duration(text: object) -> Duration:
    """A duration of the configuration, a century at most."""
    duration = parse_duration(text)
    if duration.ns > _MOST_DAYS * _NS["d"]:
        raise ValueError(f"must be at most {_MOST_DAYS}d, got {text!r}")
    return duration


def parse_size(text: object) -> int:
    """Read a number of bytes: ``67108864``, ``64MiB`` (powers of 1024), ``64MB`` (powers of 1000)."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    found = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None or found[2] not in _BYTES:
        raise ValueError(f"must be a size such as 64MiB, 100MB or a number of bytes, got {text!r}")
    return int(Decimal(found[1]) * _BYTES[found[2]])


def parse_address(text: object) -> Address:
    """Read ``host:port``, ``[::1]:port`` or ``:port`` (every interface)."""
    if isinstance(text, Address):
        return text
    host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not colon or not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > 65535:
        raise ValueError(f"must be an address host:port such as 0.0.0.0:4318, got {text!r}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"must have its IPv6 host in brackets, such as [::1]:4318, got {text!r}")
    return Address(host or "0.0.0.0", int(port))  # noqa: S104  # ":4318" means every interface, as it does everywhere


def _some(duration: Duration) -> Duration:
    if not duration.ns:
        raise ValueError("must be longer than zero")
    return duration


def _positive(size: int) -> int:
    if size <= 0:
        raise ValueError("must be more than zero bytes")
    return size


PositiveDuration: TypeAlias = Annotated[Duration, AfterValidator(_some)]
SizeField: TypeAlias = Annotated[
    int,
    BeforeValidator(parse_size),
    AfterValidator(_positive),
    WithJsonSchema({"type": ["integer", "string"], "examples": ["64MiB", 67108864]}),
]


def size_text(size: int) -> str:
    """A size as the configuration would write it: ``64MiB`` where it comes out whole, else the bare number."""
    unit = next((unit for unit in ("GiB", "MiB", "KiB") if size and size % _BYTES[unit] == 0), None)
    return f"{size // _BYTES[unit]}{unit}" if unit is not None else str(size)
