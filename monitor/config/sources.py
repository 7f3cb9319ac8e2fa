"""The sections of the configuration on where traces come from, who may send them, and where they go on to.

Forward makes the monitor a sidecar through which an application exports. References are where expected outcomes stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from sidejudge.integrations.addresses import Credentials
from sidejudge.integrations.raw import MappedField

from .langfuse import LangfuseSource
from .section import GIVEN_AS_LIST, FilePath, Secret, Section
from .units import Address, Duration, PositiveDuration, SizeField, parse_address, parse_duration

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OF_CONNECTION: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


def _is_value(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().isprintable():
        raise ValueError("must be one line without control characters (a line break at the end of a secret's file?)")
    return value


def _is_sent(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text.isascii() or text != text.strip():
        raise ValueError("must be ASCII, without a space at its beginning or end")
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
OwnHeaderValue: TypeAlias = Annotated[HeaderValue, AfterValidator(_is_sent)]
"""Of the monitor's own requests, whose client sends ASCII alone; what is forwarded may hold any bytes."""
OwnHeaders: TypeAlias = Annotated[Mapping[str, OwnHeaderValue], AfterValidator(_are_names)]


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
    """certificate authorities for the certificate of `url`, PEM, read again when the file changes; without it: those of
    the system
    """


AttributeName: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]


def sent_headers(headers: Mapping[str, SecretStr], authorization: SecretStr | None = None) -> dict[str, str]:
    """The headers of a request as they are sent, names in lower case; ``authorization`` replaces one of that name."""
    given = {name.lower(): value.get_secret_value() for name, value in headers.items()}
    if authorization is not None:
        given["authorization"] = authorization.get_secret_value()
    return given


class AuthSection(Section):
    """Whose requests are accepted; without this section, all."""

    bearer: Annotated[tuple[Secret, ...], GIVEN_AS_LIST] = ()
    """tokens that are accepted as `Authorization: Bearer …`, as `${NAME}`"""
    basic: Mapping[str, Secret] = Field(default_factory=dict)
    """user names with their passwords, `Authorization: Basic …`; an application with a Langfuse SDK sends its public
    key with its secret key"""

    @model_validator(mode="after")
    def _somebody(self) -> AuthSection:
        if not self.bearer and not self.basic:
            raise ValueError("names nobody whose requests are accepted; give bearer or basic, or take the section out")
        return self

    @property
    def credentials(self) -> Credentials:
        """What requests are compared with."""
        users = {name: password.get_secret_value() for name, password in self.basic.items()}
        return Credentials(tokens=[token.get_secret_value() for token in self.bearer], users=users)


class TlsSection(Section):
    """Encryption of an address; for OTLP over HTTP and gRPC alike."""

    certificate: FilePath
    """the server's certificate with its chain, PEM"""
    key: FilePath
    """the certificate's private key, PEM, not encrypted"""
    client_ca: FilePath | None = None
    """certificate authorities for clients' certificates, PEM; without it clients need none"""


class OtlpSection(Section):
    """OTLP traces and logs, as protobuf or JSON over HTTP, and over gRPC.

    HTTP paths are `/v1/traces`, `/v1/logs` and `/v1/metrics` (answered and dropped), and the same below
    `/api/public/otel`, where Langfuse's SDKs send.
    """

    http: Address = parse_address("0.0.0.0:4318")
    """address to listen on, host:port"""
    grpc: Address | None = None
    """address to listen on for gRPC (extra `grpc`), such as 0.0.0.0:4317; without it: none"""
    max_request_bytes: SizeField = 16 * 2**20
    """largest request body accepted, bytes after decompression; larger ones get 413"""
    auth: AuthSection | None = None
    """credentials of senders; without it none are required"""
    tls: TlsSection | None = None
    """encryption; without it none"""
    requests_per_second: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    """requests that one sender may send (two seconds' worth at once); more get 429. Without it: any"""
    max_connections: int = Field(default=1000, ge=10)
    """connections that may be open at once over HTTP, and as many over gRPC (never more than half of the process's open
    files). Beyond it the address that has the most over HTTP loses the one that is idle longest; over gRPC a further
    one is closed. Half as many greetings over TLS may be under way"""
    idle_timeout: PositiveDuration = parse_duration("60s")
    """wait for the next request of a connection; keep it longer than exporters pause between two"""
    head_timeout: PositiveDuration = parse_duration("10s")
    """time for the head of an HTTP request (then it gets 408) and for the beginning of a gRPC connection"""
    body_timeout: PositiveDuration = parse_duration("60s")
    """time for the body of an HTTP request, and for a response to be read; longer than exporters wait. Over gRPC a
    message that is not there has two seconds while others wait to be read"""
    cors_origins: Annotated[tuple[str, ...], GIVEN_AS_LIST] = ()
    """origins whose pages may send from a browser, such as `https://*.example.org`"""


class SourcesSection(Section):
    """Where traces come from."""

    otlp: OtlpSection = OtlpSection()
    langfuse: LangfuseSource | None = None
    """read traces from Langfuse"""
    attributes: Mapping[AttributeName, MappedField] = Field(default_factory=dict)
    """meanings of attributes that are not understood, by their names as `sidejudge inspect --unread` lists them:
    `{my.prompt: input, my.answer: output}`. A mapped name takes precedence; among several names for one field, the
    first that a span has
    """


_WITHIN = parse_duration("7d")
_KEY = re.compile(r"metadata\..+|trace_id|session_id|user_id|name")


def _valid_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ValueError(f"must be metadata.KEY, trace_id, session_id, user_id or name, got {key[:60]!r}")
    return key


Key: TypeAlias = Annotated[str, AfterValidator(_valid_key)]


class ReferenceSection(Section):
    """The source of a trace's expected outcome: one of the first four keys.

    Sources outside the trace are read again every minute; a reference that comes, changes or goes within
    `reevaluate_within` of the verdict makes a revision. After `assembly.late` this needs a Langfuse with the trace,
    which is read there once more.
    """

    metadata: str | None = Field(default=None, min_length=1)
    """key of the trace's metadata that holds the expected outcome"""
    langfuse_dataset: str | None = Field(default=None, min_length=1)
    """name of a dataset in Langfuse: of the item whose source is the trace; with `key`, of the one that shares it with
    the trace (`metadata` of the item), and sources are not looked at"""
    langfuse_corrections: bool | None = None
    """the output as people corrected it in Langfuse (scores of type CORRECTION)"""
    file: FilePath | None = None
    """JSON Lines with `expected_outcome` and what `key` names, relative to the working directory"""
    key: Key | None = None
    """the value that a trace and its reference share: `metadata.KEY`, `trace_id`, `session_id`, `user_id`, `name`"""

    reevaluate_within: PositiveDuration | None = None
    """how long after a verdict a reference that comes, changes or goes still makes a revision (default: 7d). Where
    Langfuse is configured verdicts and details are kept for as long, if that is longer than `store.retention`"""

    @model_validator(mode="after")
    def _one_place(self) -> ReferenceSection:
        places = [self.metadata, self.langfuse_dataset, self.langfuse_corrections or None, self.file]
        if sum(place is not None for place in places) != 1:
            raise ValueError("needs exactly one of metadata, langfuse_dataset, langfuse_corrections and file")
        if self.file is not None and self.key is None:
            raise ValueError("needs key beside file, such as metadata.call_id")
        if self.key is not None and self.file is None and self.langfuse_dataset is None:
            raise ValueError("has a key, which only goes with langfuse_dataset and file")
        if self.metadata is not None and self.reevaluate_within is not None:
            raise ValueError("has reevaluate_within, which only goes with what is found elsewhere than in the trace")
        return self

    @property
    def within(self) -> Duration:
        """How long after a verdict a change makes a revision."""
        return self.reevaluate_within or _WITHIN

    @property
    def in_langfuse(self) -> bool:
        """Whether it is looked for in Langfuse."""
        return self.langfuse_dataset is not None or bool(self.langfuse_corrections)
