"""Asking a running monitor over its HTTP API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

import click

from .errors import CommandError

DEFAULT_URL = "http://127.0.0.1:8790"
TIMEOUT_S = 10.0

Function = TypeVar("Function", bound=Callable[..., Any])


def url_option(function: Function) -> Function:
    """``--url``, also from ``SIDEJUDGE_URL``."""
    return click.option(
        "--url", envvar="SIDEJUDGE_URL", default=DEFAULT_URL, show_default=True, help="Address of the monitor's API."
    )(function)


def ask(url: str, path: str) -> Any:
    """The JSON at ``path`` of the monitor at ``url``; ``None`` when the monitor says that there is no such thing."""
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"--url: must begin with http:// or https://, got {url!r}", f"for example {DEFAULT_URL}")
    try:
        # A monitor is asked directly: a proxy of the environment has no business between the two.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url.rstrip("/") + path, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise CommandError(f"{url}{path} answered {error.code} {error.reason}", "see the monitor's log") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise CommandError(
            f"no monitor answers at {url}: {why}", "start one with 'sidejudge serve', or name its address with --url"
        ) from None
