"""Asking a running monitor over its HTTP API: a body, a trace with its case, ended traces as lines for a terminal."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar, cast
from urllib.parse import urlsplit

import click

from sidejudge.integrations.addresses import is_local, stays
from sidejudge.monitor.api.contents_token import FILE_PATH, HEADER, read_token

from .errors import CommandError
from .terminal import table, visible, waiting

if TYPE_CHECKING:
    from http.client import HTTPMessage

    from sidejudge.scoring.trace.span import Json, JsonRecord
    from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument

DEFAULT_URL = "http://127.0.0.1:8790"
TIMEOUT_S = 10.0
TOKEN = "SIDEJUDGE_API_TOKEN"  # noqa: S105  # the name of a variable
"""Environment variable with a bearer token of ``api.auth``."""
CONTENTS_TOKEN = "SIDEJUDGE_CONTENTS_TOKEN"  # noqa: S105  # the name of a variable
"""Environment variable with the token of a monitor whose store cannot be read from here, behind a port-forward."""
_WITH_CONTENTS = ("/v1/traces", "/v1/verdicts")
_LONGEST = 64 * 2**20
"""Bytes of a response that are read."""

Function = TypeVar("Function", bound=Callable[..., object])
_Read = TypeVar("_Read")


def url_option(function: Function) -> Function:
    """``--url``, also from ``SIDEJUDGE_URL``."""
    return click.option(
        "--url", envvar="SIDEJUDGE_URL", default=DEFAULT_URL, show_default=True, help="Address of the monitor's API."
    )(function)


def ask(url: str, path: str) -> Any:
    """The JSON at ``path`` of the monitor at ``url``; ``None`` for an unknown path.

    It is not read by the API's body models: they take 0.4 s to import, and refuse the responses of other versions.
    """
    return _asked(url, path, json.loads)


def ask_for(url: str, path: str, fits: Callable[[JsonRecord], bool], query: str = "") -> JsonRecord:
    """The same of an object that ``fits``; ``CommandError`` where it is something else."""
    answer = ask(url, f"{path}{query}")
    if not isinstance(answer, Mapping) or not fits(answer):
        raise CommandError(f"{url}{path} does not answer as a monitor does", "name a monitor's address with --url")
    return answer


def ask_bytes(url: str, path: str) -> bytes | None:
    """The body at ``path`` as it is; ``None`` where the monitor does not know it, or does not show it here."""
    return _asked(url, path, bytes, shown=False)


def check_url(url: str) -> None:
    """Refuse what is no address of a monitor, before it is asked again and again."""
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"--url: must begin with http:// or https://, got {url!r}", f"for example {DEFAULT_URL}")


def _asked(url: str, path: str, read: Callable[[bytes], _Read], *, shown: bool = True) -> _Read | None:
    check_url(url)
    try:
        headers = _credentials()
        with waiting(f"asking {url}"):
            if path.startswith(_WITH_CONTENTS):
                headers |= _contents_token(url)
            return read(_answer(url, path, headers))
    except urllib.error.HTTPError as error:
        with error:
            stated = _stated(error) if error.code in _STATED else None
        if error.code == HTTPStatus.NOT_FOUND or (error.code == HTTPStatus.FORBIDDEN and not shown):
            return None
        if stated is not None:
            raise stated from None
        remedy = f"set {TOKEN}" if error.code == HTTPStatus.UNAUTHORIZED else "see the monitor's log"
        if HTTPStatus.MULTIPLE_CHOICES <= error.code < HTTPStatus.BAD_REQUEST:
            remedy = "name the monitor's own address with --url; another host is sent nothing"
        raise CommandError(f"{url}{path} answered {error.code} {error.reason}", remedy) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise CommandError(
            f"no monitor answers at {url}: {getattr(why, 'strerror', None) or why}",
            "start one with 'sidejudge serve', or name the address of one that runs",
        ) from None


_STATED: Final = (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)


def _stated(error: urllib.error.HTTPError) -> CommandError | None:
    """The mistake in a request, or why it cannot be answered now, as the monitor states it."""
    try:
        body = json.loads(error.read(_LONGEST))
        return CommandError(visible(str(body["error"])), visible(str(body["remedy"])))
    except (OSError, ValueError, LookupError, TypeError):
        return None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects on the same host alone: it would send the tokens to any other."""

    def redirect_request(  # noqa: PLR0917  # the library calls it
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        return super().redirect_request(req, fp, code, msg, headers, newurl) if stays(req.full_url, newurl) else None


def _answer(url: str, path: str, headers: Mapping[str, str]) -> bytes:
    # A monitor is called directly: a proxy of the environment has no business between the two.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Redirects)
    request = urllib.request.Request(url.rstrip("/") + path, headers=dict(headers))  # noqa: S310  # the caller checks it
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        found: bytes = answer.read(_LONGEST)
        return found


@cache
def _contents_token(url: str) -> dict[str, str]:
    """The header that shows contents, where this is the monitor's machine and its token can be read.

    The monitor names the file. Only a valid token is read from it and sent, and only to this machine.
    """
    if not is_local(urlsplit(url).hostname or ""):
        return {}
    token = os.environ.get(CONTENTS_TOKEN)
    if not token:
        try:
            found = json.loads(_answer(url, FILE_PATH, _credentials()))
        except urllib.error.HTTPError:  # one of another version
            return {}
        file = found.get("token_file") if isinstance(found, dict) else None
        token = read_token(Path(file)) if isinstance(file, str) and file.endswith(".token") else None
    return {HEADER: token} if token else {}


def _credentials() -> dict[str, str]:
    token = os.environ.get(TOKEN)
    return {"Authorization": f"Bearer {token}"} if token else {}


TRACE_ID: Final = re.compile(r"[0-9a-fA-F]{32}")


def fetched_trace(trace_id: str, url: str) -> tuple[TraceDocument, dict[str, Json]]:
    """The trace and its case, both as JSON. Raises ``CommandError`` where either is not there."""
    found = ask(url, f"/v1/traces/{trace_id.lower()}")
    if found is None:
        raise CommandError(f"nothing is known of trace {trace_id}", "name a trace that was drawn and is kept still")
    if found.get("case") is None:
        raise CommandError(
            f"the contents of trace {trace_id} are not shown here, or no longer held",
            "call where the monitor's store can be read while the spans are held, or see api.contents",
        )
    return cast("TraceDocument", found), found["case"]


HEAD = ("ended", "trace", "service", "name", "reason", "why")


def traces_table(traces: Sequence[TraceDocument]) -> str:
    """A table, the last trace at the bottom."""
    return table(HEAD, [_cells(trace, clip=60) for trace in reversed(traces)])


def trace_line(trace: TraceDocument) -> str:
    """One trace in one line, aligned as far as names are short."""
    at, trace_id, service, name, reason, why = _cells(trace, clip=200)
    return visible(f"{at}  {trace_id}  {service:20}  {reason:24}  {name}  {why}".rstrip())


def _cells(trace: TraceDocument, clip: int) -> tuple[str, ...]:
    verdicts = ", ".join(f"{each['rubric']} {_outcome(each)}" for each in trace.get("verdicts") or ())
    reason = str(trace["reason"])
    passed = reason == "scored" and all(each.get("passed") for each in trace.get("verdicts") or ())
    why = "" if passed else str(trace.get("why") or "")
    at = datetime.fromtimestamp(trace["closed_ns"] / 1e9, UTC).strftime("%H:%M:%S")
    texts = (at, trace["trace_id"], trace.get("service") or "unknown_service", trace.get("name") or "-")
    return (*map(str, texts), verdicts or reason, why if len(why) <= clip else why[:clip] + "…")


def _outcome(verdict: VerdictDocument) -> str:
    composite = verdict.get("composite")
    value = f" {composite:.2f}" if isinstance(composite, int | float) else ""
    outcomes = {True: "passed", False: "failed", None: str(verdict.get("state"))}
    return outcomes[verdict.get("passed")] + value
