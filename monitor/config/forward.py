"""The section of the configuration that makes the monitor a sidecar through which an application exports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from .section import GIVEN_AS_LIST, FilePath, Secret, Section
from .units import PositiveDuration, SizeField, parse_duration

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OF_CONNECTION: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


def _is_value(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().isprintable():
        raise ValueError("must be one line without control characters (a line break at the end of a secret's file?)")
    return value


def _are_names(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name in headers:
        if not _TOKEN.fullmatch(name) or name.lower() in _OF_CONNECTION:
            raise ValueError(f"{name!r} is no header, or one that concerns the connection and is not for you to set")
    return headers


def _is_base_url(url: str) -> str:
    parts = urlsplit(url)
    try:
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or parts.username is not None or not url.isascii():
        raise ValueError("must be an http or https address without credentials, query or fragment")
    return url.rstrip("/")


def _is_path(path: str) -> str:
    if path and (not path.startswith("/") or path.endswith("/") or "?" in path):
        raise ValueError(f"must be empty, or begin with / and not end with it, got {path!r}")
    return path


def _is_prefix(path: str) -> str:
    if not path.startswith("/") or "?" in path:
        raise ValueError(f"must begin with /, got {path!r}")
    return path


BaseUrl: TypeAlias = Annotated[str, AfterValidator(_is_base_url)]
PathPart: TypeAlias = Annotated[str, AfterValidator(_is_path)]
Prefix: TypeAlias = Annotated[str, AfterValidator(_is_prefix)]
HeaderValue: TypeAlias = Annotated[Secret, AfterValidator(_is_value)]


class ForwardSection(Section):
    """Sidecar mode: requests are forwarded unchanged, and the application gets upstream's answer.

    Spans and log records are judged on the way; the request goes on even if that fails. Requests over gRPC are
    forwarded over HTTP.
    """

    url: BaseUrl
    """where to: Langfuse, a Collector, any OTLP endpoint; the path of each request is appended"""
    authorization: HeaderValue | None = None
    """the `Authorization` header of forwarded requests, as `${NAME}`; without it the application's own"""
    headers: Annotated[Mapping[str, HeaderValue], AfterValidator(_are_names)] = Field(default_factory=dict)
    """further headers of forwarded requests, which replace the application's"""
    signals: Annotated[tuple[Literal["traces", "logs", "metrics"], ...], GIVEN_AS_LIST] = ("traces", "logs", "metrics")
    """OTLP signals that are forwarded; the others are answered here (Langfuse takes only traces)"""
    otlp_path: PathPart = ""
    """prefix for `/v1/traces` and similar paths of applications; Langfuse: `/api/public/otel`"""
    passthrough: Annotated[tuple[Prefix, ...], GIVEN_AS_LIST] = ("/api/public/",)
    """prefixes of other paths that are forwarded; the rest is answered here"""
    hosts: Annotated[tuple[str, ...], GIVEN_AS_LIST] = ()
    """names (`*` matches anything) under which applications reach this monitor, beside addresses, names without a dot
    and private ones (`.local`, `.internal`, `.svc`). A request for another Host, or one that a web page may have made,
    goes on without `authorization` and `headers`, unless `sources.otlp.auth` admits it"""
    buffer: SizeField | None = None
    """bytes on disk, beside `store.path`, for OTLP requests that `url` does not accept for now (it is out of reach,
    takes longer than 3 s, or answers 5xx, 408 or 429): they are answered 200 and sent in order later. Without it the
    application gets the failure, and exporters give up after a minute or so. The chart of the gateway sets 1GiB
    """
    timeout: PositiveDuration = parse_duration("30s")
    """wait for the first byte of an answer, and between two parts of it"""
    ca: FilePath | None = None
    """certificate authorities for the certificate of `url`, PEM; without it: those of the system"""
