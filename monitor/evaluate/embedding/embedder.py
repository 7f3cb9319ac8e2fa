"""Embedder: texts → vectors of length 1, from the cache or by the model.

The model works for one call at a time. What other cases ask for meanwhile is gathered and travels in the next call, a
text that several ask for once.

Cache of vectors: a text is embedded once, not again after a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from sidejudge.integrations.embed.local import EmbeddingError
from sidejudge.integrations.store.errors import StoreError
from sidejudge.scoring.evaluators.embedding import Vector, unit

if TYPE_CHECKING:
    from sidejudge.integrations.prometheus.judge_metrics import EmbeddingMetrics

log = logging.getLogger("sidejudge.embedding")


class VectorCacheStorage(Protocol):
    """Where vectors lie: bytes by key, bounded."""

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, bytes]: ...
    async def put(self, vectors: Mapping[str, bytes], now_ns: int, most: int) -> None: ...


class VectorCache:
    """Vectors by model and text. A store that fails costs time, not answers."""

    def __init__(self, storage: VectorCacheStorage, *, model: str, entries: int, clock_ns: Callable[[], int]) -> None:
        self._storage = storage
        self._model = model
        self._entries = entries
        self._clock_ns = clock_ns

    async def get(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The cached vectors, by text."""
        if not texts or not self._entries:
            return {}
        try:
            return await asyncio.to_thread(self._get, texts)
        except StoreError as error:
            log.warning("could not read vectors; the texts are embedded again", extra={"cause": str(error)})
            return {}

    async def put(self, packed: Mapping[str, bytes]) -> None:
        """Keep packed vectors by text."""
        if not packed or not self._entries:
            return
        vectors = {self._key(text): vector for text, vector in packed.items()}
        try:
            await self._storage.put(vectors, self._clock_ns(), self._entries)
        except StoreError as error:
            log.warning("could not keep vectors", extra={"cause": str(error)})

    def _get(self, texts: Sequence[str]) -> dict[str, Vector]:
        by_key = {self._key(text): text for text in texts}
        found = self._storage.get(list(by_key), self._clock_ns())
        return {by_key[key]: unpack(vector) for key, vector in found.items()}

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._model}\0{text}".encode()).hexdigest()


def pack(vector: Vector) -> bytes:
    """A vector as float32, little-endian."""
    return struct.pack(f"<{len(vector)}f", *vector)


def unpack(packed: bytes) -> Vector:
    """The vector again, to the precision of float32."""
    return struct.unpack(f"<{len(packed) // 4}f", packed)


Vectors: TypeAlias = dict[str, Vector]
PendingTexts: TypeAlias = tuple[tuple[str, ...], "asyncio.Future[Vectors]"]


class EmbeddingModel(Protocol):
    """A source of vectors. It raises ``EmbeddingError``."""

    @property
    def name(self) -> str: ...
    async def start(self) -> None: ...
    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]: ...
    async def close(self) -> None: ...


class Embedder:
    """One model and its cache, used from one event loop."""

    def __init__(self, model: EmbeddingModel, cache: VectorCache, *, observer: EmbeddingMetrics | None = None) -> None:
        self._model: Final = model
        self._cache = cache
        self._observer = observer
        self._requested: list[PendingTexts] = []
        self._working: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the model now. Raises ``EmbeddingError``."""
        await self._model.start()

    async def vectors(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text that the model gives a direction. Raises ``EmbeddingError``."""
        known = await self._cache.get(texts)
        missing = tuple(text for text in dict.fromkeys(texts) if text not in known)
        if self._observer is not None:
            self._observer.looked_up(hits=len(known), misses=len(missing))
        if not missing:
            return known
        future: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        self._requested.append((missing, future))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return {**known, **await future}

    async def close(self) -> None:
        """Refuse what waits and end the model; idempotent."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
        _refuse(self._requested, EmbeddingError(_CLOSED))
        await self._model.close()

    async def _work(self) -> None:
        while self._requested:
            requested, self._requested = self._requested, []
            try:
                await self._serve([each for each in requested if not each[1].done()])
            finally:
                _refuse(requested, EmbeddingError(_CLOSED))  # of what was served this changes nothing

    async def _serve(self, requested: Sequence[PendingTexts]) -> None:
        try:
            made = await self._embed(tuple({text: None for texts, _ in requested for text in texts}))
        except EmbeddingError as error:
            if not error.of_texts or len(requested) == 1:
                _refuse(requested, error)
                return
            for each in requested:  # what one case holds costs no other its vectors
                await self._serve([each])
        except Exception as error:  # noqa: BLE001  # a bug is raised to the callers, and the next call goes on
            _refuse(requested, EmbeddingError(f"embedding failed: {type(error).__name__}"))
        else:
            for texts, future in requested:
                if not future.done():
                    future.set_result({text: made[text] for text in texts if text in made})

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        known = await self._cache.get(texts)  # the call before may have embedded some of them
        left = [text for text in texts if text not in known]
        return {**known, **await self._anew(left)} if left else known

    async def _anew(self, texts: Sequence[str]) -> Vectors:
        began, failed = time.monotonic(), True
        try:
            given = await self._model.embed(texts)
            failed = False
        finally:
            if self._observer is not None:
                self._observer.embedded(texts=len(texts), duration_s=time.monotonic() - began, failed=failed)
        packed = await asyncio.to_thread(_packed, texts, given)
        await self._cache.put(packed)
        # What comes out of the cache later is what is answered with now, to the last digit.
        return {text: unpack(vector) for text, vector in packed.items()}


_CLOSED: Final = "embedding has ended; the monitor is shutting down"


def _refuse(requested: Sequence[PendingTexts], error: EmbeddingError) -> None:
    for _, future in requested:
        if not future.done():
            future.set_exception(error)


def _packed(texts: Sequence[str], given: Sequence[Vector]) -> Mapping[str, bytes]:
    packed: dict[str, bytes] = {}
    for text, vector in zip(texts, given, strict=True):
        try:
            packed[text] = pack(unit(vector))
        except ValueError:  # no direction: the text has no vector
            continue
    return packed
