"""Cache of judged answers: an answer that was paid for is not requested again, not even after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sidejudge.integrations.store.errors import StoreError

log = logging.getLogger("sidejudge.judge")


class AnswerCacheStorage(Protocol):
    """The storage of the cache: JSON by key, bounded in number."""

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, str]: ...
    async def put(self, answers: Mapping[str, str], now_ns: int, most: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedAnswer:
    """A judged answer. ``value`` is of the type that the question's docstring names.

    ``flags``, ``votes``, ``dissent`` and ``certainty`` are as in ``Judgement``.
    """

    value: object
    reason: str
    prompt_version: str
    flags: tuple[str, ...] = ()
    votes: tuple[tuple[str, str], ...] = ()
    dissent: float = 0.0
    certainty: float | None = None

    def to_json(self) -> str:
        parts = [self.value, self.reason, self.prompt_version, self.flags, self.votes, self.dissent, self.certainty]
        return json.dumps(parts, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> CachedAnswer:
        value, reason, prompt_version, flags, *of_panel = json.loads(text)
        votes, dissent, certainty = (*of_panel, None, None, None)[:3]  # an earlier version kept fewer
        # JSON has no tuples: a list is an answer of several parts.
        value = tuple(value) if isinstance(value, list) else value
        return cls(
            value=value,
            reason=reason,
            prompt_version=prompt_version,
            flags=tuple(flags),
            votes=tuple((model, ballot) for model, ballot in votes or ()),
            dissent=dissent or 0.0,
            certainty=certainty,
        )


class AnswerCache:
    """Answers by question and model. A store that fails costs money, not answers."""

    def __init__(self, storage: AnswerCacheStorage, *, entries: int, clock_ns: Callable[[], int]) -> None:
        self._storage = storage
        self._entries = entries
        self._clock_ns = clock_ns

    async def get(self, keys: Sequence[str]) -> dict[str, CachedAnswer]:
        """The known answers by key."""
        if not keys or not self._entries:
            return {}
        try:
            found = await asyncio.to_thread(self._storage.get, keys, self._clock_ns())
        except StoreError as error:
            log.warning("could not read judged answers; the judge is asked again", extra={"cause": str(error)})
            return {}
        return {key: CachedAnswer.from_json(text) for key, text in found.items()}

    async def put(self, answers: Mapping[str, CachedAnswer]) -> None:
        """Store answers by key."""
        if not answers or not self._entries:
            return
        texts = {key: kept.to_json() for key, kept in answers.items()}
        try:
            await self._storage.put(texts, self._clock_ns(), self._entries)
        except StoreError as error:
            log.warning("could not keep judged answers", extra={"cause": str(error)})


def key(model: str, question: str) -> str:
    """The key of an answer by ``model`` (the identity of a panel) to ``question``, the hash of a question."""
    return hashlib.sha256(f"{model}\0{question}".encode()).hexdigest()
