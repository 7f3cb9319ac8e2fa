"""Cache of vectors: a text is embedded once, not again after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sidejudge.integrations.store.errors import StoreError
from sidejudge.scoring.evaluators.vector import Vector

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
