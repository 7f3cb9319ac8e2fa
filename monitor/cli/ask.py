"""Asking a running monitor over its HTTP API."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

import click

from .errors import CommandError
from .progress import waiting

DEFAULT_URL = "http://127.0.0.1:8790"
TIMEOUT_S = 10.0
TOKEN = "SIDEJUDGE_API_TOKEN"  # noqa: S105  # the name of a variable
"""Environment variable with a bearer token of ``api.auth``."""
_LONGEST = 64 * 2**20
"""Bytes of a response that are read."""

Function = TypeVar("Function", bound=Callable[..., object])


def url_option(function: Function) -> Function:
    """``--url``, also from ``SIDEJUDGE_URL``."""
    return click.option(
        "--url", envvar="SIDEJUDGE_URL", default=DEFAULT_URL, show_default=True, help="Address of the monitor's API."
    )(function)


def ask(url: str, path: str) -> Any:
    """The JSON at ``path`` of the monitor at ``url``; ``None`` when the monitor does not know it.

    The API's body models do not read it: they take 0.4 s to import, and refuse what a monitor of another version sends.
    """
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"--url: must begin with http:// or https://, got {url!r}", f"for example {DEFAULT_URL}")
    try:
        # A monitor is called directly: a proxy of the environment has no business between the two.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(url.rstrip("/") + path, headers=_credentials())  # noqa: S310  # checked above
        with waiting(f"asking {url}"), opener.open(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read(_LONGEST))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        remedy = f"set {TOKEN}" if error.code == HTTPStatus.UNAUTHORIZED else "see the monitor's log"
        raise CommandError(f"{url}{path} answered {error.code} {error.reason}", remedy) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise CommandError(
            f"no monitor answers at {url}: {why}", "start one with 'sidejudge serve', or name its address with --url"
        ) from None


def _credentials() -> dict[str, str]:
    token = os.environ.get(TOKEN)
    return {"Authorization": f"Bearer {token}"} if token else {}
