"""Cache of judged answers: what was paid for once is not asked again, not even after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from integrations.store.errors import StoreError

log = logging.getLogger("sidejudge.judge")


class AnswerCacheStorage(Protocol):
    """Where the cache lies: JSON by key, bounded."""

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, str]: ...
    async def put(self, answers: Mapping[str, str], now_ns: int, most: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedAnswer:
    """A judged answer. ``value`` is of the type that the question's docstring says; ``flags`` as in ``Judgement``."""

    value: object
    reason: str
    prompt_version: str
    flags: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps([self.value, self.reason, self.prompt_version, self.flags], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> CachedAnswer:
        value, reason, prompt_version, flags = json.loads(text)
        # Several answers to one question are a tuple; JSON does not know these.
        value = tuple(value) if isinstance(value, list) else value
        return cls(value=value, reason=reason, prompt_version=prompt_version, flags=tuple(flags))


class AnswerCache:
    """Answers by question and by who was asked. A store that fails costs money, not answers."""

    def __init__(self, shelf: AnswerCacheStorage, *, entries: int, clock_ns: Callable[[], int]) -> None:
        self._shelf = shelf
        self._entries = entries
        self._clock_ns = clock_ns

    async def get(self, keys: Sequence[str]) -> dict[str, CachedAnswer]:
        """What is known, by key."""
        if not keys or not self._entries:
            return {}
        try:
            found = await asyncio.to_thread(self._shelf.get, keys, self._clock_ns())
        except StoreError as error:
            log.warning("could not read judged answers; they are asked for again", extra={"cause": str(error)})
            return {}
        return {key: CachedAnswer.from_json(text) for key, text in found.items()}

    async def put(self, answers: Mapping[str, CachedAnswer]) -> None:
        """Keep what was answered."""
        if not answers or not self._entries:
            return
        texts = {key: kept.to_json() for key, kept in answers.items()}
        try:
            await self._shelf.put(texts, self._clock_ns(), self._entries)
        except StoreError as error:
            log.warning("could not keep judged answers", extra={"cause": str(error)})


def key(who: str, asked: str) -> str:
    """The key of an answer by ``who`` (model, or panel) to what ``asked`` is the hash of."""
    return hashlib.sha256(f"{who}\0{asked}".encode()).hexdigest()
