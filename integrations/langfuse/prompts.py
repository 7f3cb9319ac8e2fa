"""Prompts: the text of a question that lies in Langfuse's prompt management, read while a configuration is read."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import httpx

from sidejudge.integrations.addresses import from_environment, trusted
from sidejudge.scoring.errors import SidejudgeError

from .client import Access

TIMEOUT_S = 10.0
MAX_BYTES = 1_000_000


class PromptError(SidejudgeError):
    """A prompt that cannot be used; the message states why, in a few words."""


def read_prompt(access: Access, name: str, *, label: str | None, version: int | None) -> tuple[str, int]:
    """The text and the version of a text prompt. It blocks; ``PromptError`` where there is none."""
    params: dict[str, str | int] = {}
    if version is not None:
        params["version"] = version
    elif label is not None:
        params["label"] = label
    url = f"{access.base_url.rstrip('/')}/api/public/v2/prompts/{quote(name, safe='')}"
    try:
        auth = (access.public_key, access.secret_key)
        from_env = from_environment(httpx.URL(url).host)
        answer = httpx.get(url, params=params, auth=auth, timeout=TIMEOUT_S, verify=trusted(), trust_env=from_env)
        found: object = answer.json() if answer.is_success and len(answer.content) <= MAX_BYTES else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise PromptError(f"Langfuse cannot be reached: {type(error).__name__}") from None
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise PromptError("there is no such prompt, version or label")
    if not answer.is_success:
        raise PromptError(f"Langfuse answered {answer.status_code}")
    text, number = (found.get("prompt"), found.get("version")) if isinstance(found, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(number, int):
        raise PromptError("it is no text prompt")
    return text, number
