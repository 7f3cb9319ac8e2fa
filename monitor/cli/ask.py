"""Asking a running monitor over its HTTP API."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from sidejudge.integrations.addresses import is_local
from sidejudge.monitor.api.contents_token import FILE_PATH, HEADER, read_token

from .errors import CommandError
from .progress import waiting

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
    """The JSON at ``path`` of the monitor at ``url``; ``None`` when the monitor does not know it.

    The API's body models do not read it: they take 0.4 s to import, and refuse what a monitor of another version sends.
    """
    return _asked(url, path, json.loads)


def ask_bytes(url: str, path: str) -> bytes | None:
    """The body at ``path`` as it is; ``None`` where the monitor does not know it, or does not show it here."""
    return _asked(url, path, bytes, shown=False)


def _asked(url: str, path: str, read: Callable[[bytes], _Read], *, shown: bool = True) -> _Read | None:
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"--url: must begin with http:// or https://, got {url!r}", f"for example {DEFAULT_URL}")
    try:
        headers = _credentials()
        with waiting(f"asking {url}"):
            if path.startswith(_WITH_CONTENTS):
                headers |= _contents_token(url)
            return read(_answer(url, path, headers))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_FOUND or (error.code == HTTPStatus.FORBIDDEN and not shown):
            return None
        remedy = f"set {TOKEN}" if error.code == HTTPStatus.UNAUTHORIZED else "see the monitor's log"
        raise CommandError(f"{url}{path} answered {error.code} {error.reason}", remedy) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise CommandError(
            f"no monitor answers at {url}: {getattr(why, 'strerror', None) or why}",
            "start one with 'sidejudge serve', or name its address with --url",
        ) from None


def _answer(url: str, path: str, headers: Mapping[str, str]) -> bytes:
    # A monitor is called directly: a proxy of the environment has no business between the two.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url.rstrip("/") + path, headers=dict(headers))  # noqa: S310  # the caller checks it
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        found: bytes = answer.read(_LONGEST)
        return found


@cache
def _contents_token(url: str) -> dict[str, str]:
    """The header that shows contents, where this is the monitor's machine and its token can be read.

    The monitor names the file. Of what it names only a token is read and sent, and only to this machine.
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
