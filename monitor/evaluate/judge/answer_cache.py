"""Cache of judged answers and vectors: what was paid for is not requested again, not even after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sidejudge.integrations.store.errors import StoreError

V = TypeVar("V")
T = TypeVar("T")


class CacheStorage(Protocol[V]):
    """The storage of a cache: things by key, bounded in number."""

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, V]: ...
    async def put(self, things: Mapping[str, V], now_ns: int, most: int) -> None: ...


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


class Cache(Generic[V, T]):
    """Things by key; ``read`` is what one of the store stands for. A store that fails costs work, not answers.

    ``log``, ``what`` and ``again`` are for the log: what the things are, and what follows where they cannot be read.
    """

    def __init__(
        self, storage: CacheStorage[V], read: Callable[[V], T], *, entries: int, clock_ns: Callable[[], int],
        log: logging.Logger, what: str, again: str,
    ) -> None:  # fmt: skip
        self._storage, self._read, self._entries, self._clock_ns = storage, read, entries, clock_ns
        self._log, self._what, self._again = log, what, again

    async def get(self, keys: Sequence[str]) -> dict[str, T]:
        """The known things by key."""
        if not keys or not self._entries:
            return {}
        try:
            return await asyncio.to_thread(self._get, keys)
        except StoreError as error:
            self._log.warning("could not read %s; %s", self._what, self._again, extra={"cause": str(error)})
            return {}

    def _get(self, keys: Sequence[str]) -> dict[str, T]:
        return {key: self._read(thing) for key, thing in self._storage.get(keys, self._clock_ns()).items()}

    async def put(self, things: Mapping[str, V]) -> None:
        """Store things by key."""
        if not things or not self._entries:
            return
        try:
            await self._storage.put(things, self._clock_ns(), self._entries)
        except StoreError as error:
            self._log.warning("could not keep %s", self._what, extra={"cause": str(error)})


def key(model: str, question: str) -> str:
    """The key of an answer by ``model`` (the identity of a panel) to ``question``, the hash of a question."""
    return hashlib.sha256(f"{model}\0{question}".encode()).hexdigest()
