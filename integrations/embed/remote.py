"""Embeddings of an endpoint, through litellm. It asks once for each batch; what fails has a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from types import ModuleType
from typing import Protocol

from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind, read_error
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.scoring.evaluators.embedding import Vector


class _Response(Protocol):
    data: Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model at an endpoint; ``name`` is ``provider/model`` as litellm writes it. ``timeout_s`` is that of a batch."""

    name: str
    library: LiteLLM
    _: KW_ONLY
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    batch_size: int = 32
    timeout_s: float = 60.0

    async def start(self) -> None:
        """Load litellm; the endpoint is not called. Raises ``ProviderError``."""
        await self.library.start()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, as the endpoint gives it. Raises ``ProviderError``."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), self.batch_size):
            vectors += await self._batch(list(texts[start : start + self.batch_size]))
        return vectors

    async def close(self) -> None:
        """Nothing of its own: litellm belongs to whoever made it."""

    async def _batch(self, texts: list[str]) -> list[Vector]:
        async def work(litellm: ModuleType) -> _Response:
            response: _Response = await litellm.aembedding(
                model=self.name,
                input=texts,
                api_base=self.api_base,
                api_key=self.api_key,
                timeout=self.timeout_s,
                encoding_format="float",
                num_retries=0,
                max_retries=0,
                drop_params=True,
            )
            return response

        try:
            return _read(await self.library.run(work), len(texts))
        except ProviderError:
            raise
        except Exception as error:  # noqa: BLE001  # any: it raises what its many providers raise
            raise read_error(error, secret=self.api_key) from None  # its chain may hold the texts


def _read(response: _Response, count: int) -> list[Vector]:
    by_place: dict[int, Vector] = {}
    for place, item in enumerate(response.data):
        vector = item["embedding"]
        if not isinstance(vector, list) or not all(type(value) in (int, float) for value in vector):
            raise ProviderError(ProviderErrorKind.BAD_ANSWER, "an embedding is not a list of numbers")
        reported = item.get("index")
        by_place[reported if isinstance(reported, int) else place] = vector
    if set(by_place) != set(range(count)):
        raise ProviderError(ProviderErrorKind.BAD_ANSWER, f"{len(by_place)} embeddings for {count} texts")
    if len({len(vector) for vector in by_place.values()}) > 1:
        raise ProviderError(ProviderErrorKind.BAD_ANSWER, "embeddings of different lengths")
    return [by_place[place] for place in range(count)]
