"""Embedding: questions are answered by likeness in meaning, all texts of a round in one call.

The model works for one call at a time. Requests of other cases meanwhile are gathered for the next call, shared texts
once. A text is embedded once, not again after a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from sidejudge.integrations.embed import EmbeddingError, LocalModel, RemoteModel
from sidejudge.integrations.provider.errors import OF_CONTENTS, ProviderError, ProviderErrorKind
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.evaluate.backends import ATTEMPTS, EMBEDDINGS_OUT
from sidejudge.monitor.evaluate.judge.answer_cache import Cache, CacheStorage
from sidejudge.monitor.evaluate.judge.breaker import REACTIONS, Breaker, Permit, pause
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.embedding import OF_THE_SEED, QUESTIONS, CosineThresholds, Vector, answer, texts, unit
from sidejudge.scoring.questions.question import NoAnswer, Question, Reply
from sidejudge.scoring.result.reason import Reason, own, quoted

if TYPE_CHECKING:
    from sidejudge.integrations.prometheus.judge_metrics import EmbeddingMetrics

log = logging.getLogger("sidejudge.embedding")


def pack(vector: Vector) -> bytes:
    """A vector as float32, little-endian."""
    return struct.pack(f"<{len(vector)}f", *vector)


def unpack(packed: bytes) -> Vector:
    """The vector again, to the precision of float32."""
    return struct.unpack(f"<{len(packed) // 4}f", packed)


Vectors: TypeAlias = dict[str, Vector]
PendingTexts: TypeAlias = tuple[tuple[str, ...], "asyncio.Future[Vectors]"]

EmbeddingModel: TypeAlias = "LocalModel | Retrying"
"""A source of vectors. It raises ``EmbeddingError``."""


class Embedder:
    """One model and its cache, used from one event loop.

    ``address`` is that of its endpoint: one name may stand for different models at different addresses.
    """

    def __init__(
        self, model: EmbeddingModel, storage: CacheStorage[bytes], *, entries: int, clock_ns: Callable[[], int],
        observer: EmbeddingMetrics | None = None, address: str | None = None,
    ) -> None:  # fmt: skip
        self._model: Final = model
        self._name: Final = model.name if address is None else f"{model.name} at {address}"
        self._cache = Cache(
            storage, unpack, entries=entries, clock_ns=clock_ns,
            log=log, what="vectors", again="the texts are embedded again",
        )  # fmt: skip
        self._observer = observer
        self._requested: list[PendingTexts] = []
        self._working: asyncio.Task[None] | None = None
        self._dimensions: int | None = None
        """Dimensions of the model's latest vectors. Kept ones with another number are another model's of its name."""

    @property
    def outage(self) -> EmbeddingError | None:
        """As ``Retrying.outage``. A model in this process has none: one that cannot be loaded is a fault of its own."""
        return self._model.outage if isinstance(self._model, Retrying) else None

    async def start(self) -> None:
        """Load the model now. Raises ``EmbeddingError``."""
        await self._model.start()

    async def vectors(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text that the model gives a direction. Raises ``EmbeddingError``."""
        known = await self._known(texts)
        missing = tuple(text for text in dict.fromkeys(texts) if text not in known)
        if self._observer is not None:
            self._observer.looked_up(hits=len(known), misses=len(missing))
        if not missing:
            return known
        future: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        self._requested.append((missing, future))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        found = {**known, **await future}
        outdated = [text for text, vector in known.items() if len(vector) != self._dimensions]
        return {**found, **await self.vectors(outdated)} if outdated else found

    async def close(self) -> None:
        """Refuse waiting requests and end the model; idempotent."""
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
        known = await self._known(texts)  # the call before may have embedded some of them
        left = [text for text in texts if text not in known]
        return {**known, **await self._anew(left)} if left else known

    async def _known(self, texts: Sequence[str]) -> Vectors:
        """The kept vectors that have as many dimensions as the latest ones."""
        by_key = {self._key(text): text for text in texts}
        kept = {by_key[key]: vector for key, vector in (await self._cache.get(list(by_key))).items()}
        return {text: vector for text, vector in kept.items() if self._dimensions in (None, len(vector))}

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._name}\0{text}".encode()).hexdigest()

    async def _anew(self, texts: Sequence[str]) -> Vectors:
        size, made = self._model.batch_size if isinstance(self._model, Retrying) else len(texts), Vectors()
        for start in range(0, len(texts), size):  # what an endpoint has answered is kept, though it is out for the rest
            made |= await self._batch(texts[start : start + size])
        return made

    async def _batch(self, texts: Sequence[str]) -> Vectors:
        if (out := self.outage) is not None:
            raise out
        began, failed = time.monotonic(), True
        try:
            given = await self._model.embed(texts)
            failed = False
        finally:
            if self._observer is not None:
                self._observer.embedded(texts=len(texts), duration_s=time.monotonic() - began, failed=failed)
        packed = await asyncio.to_thread(_packed, texts, given)
        # What comes out of the cache later is what is answered with now, to the last digit.
        made = {text: unpack(vector) for text, vector in packed.items()}
        lengths = {len(vector) for vector in made.values()}
        if len(lengths) == 1:  # of an answer with several, nothing shows which are the model's
            await self._cache.put({self._key(text): vector for text, vector in packed.items()})
            self._dimensions = lengths.pop()
        return made


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


RETRIES: Final = 3
"""Further attempts at an endpoint, after transient failures."""
_OF_TEXTS: Final = (
    ProviderErrorKind.BAD_REQUEST,
    ProviderErrorKind.CONTEXT_OVERFLOW,
    ProviderErrorKind.CONTENT_REFUSED,
)


class EmbeddingBackend:
    """A backend (``monitor.evaluate.backends``); formulas and thresholds are in ``scoring.evaluators.embedding``."""

    def __init__(self, embedder: Embedder, thresholds: CosineThresholds = OF_THE_SEED) -> None:
        self._embedder = embedder
        self.thresholds = thresholds
        self._reported: EmbeddingError | None = None

    @property
    def outage(self) -> EmbeddingError | None:
        """Why the endpoint cannot be asked now; None where it can. What it has answered before is known meanwhile."""
        return self._embedder.outage

    async def start(self) -> None:
        """Load the model now rather than with the first case. Raises ``EmbeddingError``."""
        await self._embedder.start()

    async def warm(self) -> None:
        """Load the model now. A failure is logged, and is the reason for unanswered questions."""
        try:
            await self.start()
        except EmbeddingError as error:
            self._report(error)

    async def close(self) -> None:
        """End the model; idempotent."""
        await self._embedder.close()

    async def answer(self, case: Case, questions: Sequence[Question]) -> Mapping[Question, Reply]:  # noqa: ARG002  # a question holds all that is compared
        """Replies to the questions that embeddings can answer; others are left out. It never raises."""
        wanted = {question: texts(question) for question in questions if isinstance(question, QUESTIONS)}
        needed = [text for each in wanted.values() if not isinstance(each, NoAnswer) for text in each]
        try:
            vectors = await self._embedder.vectors(list(dict.fromkeys(needed))) if needed else {}
            if needed and self.outage is None:
                self._works()
            return await asyncio.to_thread(lambda: {each: answer(each, vectors, self.thresholds) for each in wanted})
        except EmbeddingError as error:
            self._report(error)
            why = Reason("{error}", error=quoted(str(error)))
            out = Reason("{outage}: {why}", outage=own(EMBEDDINGS_OUT), why=why)
            failed = NoAnswer(out if error.outage else why, failed=True)
        except Exception as error:  # noqa: BLE001  # a bug costs one case its answers; its text may quote a trace
            log.error("could not embed", extra={"cause": type(error).__name__})  # noqa: TRY400  # likewise
            failed = NoAnswer(Reason("embedding error: {kind}", kind=own(type(error).__name__)), failed=True)
        return {question: each if isinstance(each, NoAnswer) else failed for question, each in wanted.items()}

    async def vectors(self, wanted: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of texts; empty where the model fails, which is logged."""
        try:
            return await self._embedder.vectors(wanted)
        except EmbeddingError as error:
            self._report(error)
            return {}

    def _report(self, error: EmbeddingError) -> None:
        """Log a failure once, and an outage again where the model worked in between."""
        before, out = self._reported, error.outage and not error.of_texts
        if before is None or (before.logged, before.of_texts) != (error.logged, error.of_texts):
            event = "embeddings are unreachable; traces that need them wait" if out else "could not embed"
            log.error(event, extra={"cause": error.logged, "remedy": error.remedy})
        self._reported = error

    def _works(self) -> None:
        if self._reported is not None and not self._reported.of_texts:
            if self._reported.outage:
                log.info("embeddings answer again")
            self._reported = None


def embedding_backend(
    section: EmbeddingSection,
    *,
    library: LiteLLM,
    storage: CacheStorage[bytes],
    clock_ns: Callable[[], int],
    observer: EmbeddingMetrics | None = None,
) -> EmbeddingBackend:
    """A backend for the configured model; ``library`` serves a remote model, ``storage`` keeps vectors."""
    model = embedding_model(section, library, clock=lambda: clock_ns() / 1e9)
    embedder = Embedder(
        model, storage, entries=section.cache_entries, clock_ns=clock_ns, observer=observer, address=section.api_base
    )
    return EmbeddingBackend(embedder, section.cosines)


def embedding_model(
    section: EmbeddingSection, library: LiteLLM, *, clock: Callable[[], float] = time.time
) -> EmbeddingModel:
    """The model alone, in this process or at its endpoint."""
    if not section.remote:
        return LocalModel(section.model, device=section.device, batch_size=section.batch_size)
    key = section.api_key.get_secret_value() if section.api_key is not None else None
    return Retrying(
        RemoteModel(section.model, library, api_base=section.api_base, api_key=key, batch_size=section.batch_size),
        clock=clock,
    )


_TEXT = "Where is my parcel?"


async def try_embedding(section: EmbeddingSection) -> int:
    """Embed one short text and return the number of its dimensions. Raises ``EmbeddingError``, without the key.

    A model in this process is loaded for it; an endpoint is called once, and again after a transient failure.
    """
    library = LiteLLM()
    model = embedding_model(section, library)
    try:
        await model.start()
        vectors = await model.embed([_TEXT])
    finally:
        await model.close()
        await library.close()
    if not vectors or not vectors[0]:
        raise EmbeddingError(f"the embedding model {section.model} answered with no vector")
    return len(vectors[0])


class Retrying:
    """A remote model with the retries, the waits and the circuit of a judge (``monitor.evaluate.judge.breaker``).

    Where texts fail again and again, one of our own shows at the same time whether the endpoint is out: then nothing is
    sent until it answers such a text again. Else the texts are at fault. A failure that stays is an ``EmbeddingError``.
    """

    def __init__(
        self, model: RemoteModel, *, jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self.name: Final = model.name
        self.batch_size: Final = model.batch_size
        self._model = model
        self._jitter, self._clock = jitter, clock
        self._circuit = Breaker(clock(), model=model.name, consecutive=1)
        self._cause = ProviderError(ProviderErrorKind.UNREACHABLE)
        self._trial: asyncio.Task[None] | None = None

    @property
    def outage(self) -> EmbeddingError | None:
        """Why no vectors can be had now; None where they can. Once it is time the endpoint is tried, which this starts.

        So no case has to be tried, and none waits behind a trial that hangs.
        """
        permit = self._circuit.permit(self._clock())
        if permit is not None and not permit.probe:
            return None
        if permit is not None:
            self._trial = asyncio.create_task(self._try(permit))
        return self._named(self._cause, outage=True)

    async def start(self) -> None:
        """Load what is needed to ask. Raises ``EmbeddingError``."""
        try:
            await self._model.start()
        except ProviderError as error:
            raise self._named(error) from None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text. Raises ``EmbeddingError``."""
        for attempt in range(ATTEMPTS * (RETRIES + 1)):
            try:
                return await self._model.embed(texts)
            except ProviderError as error:
                wait_s = await self._wait_s(attempt, error)
            await asyncio.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Ends a trial under way. The model belongs to its creator."""
        if self._trial is not None:
            self._trial.cancel()
            await asyncio.gather(self._trial, return_exceptions=True)
        await self._model.close()

    async def _wait_s(self, attempt: int, error: ProviderError) -> float:
        """Seconds before the texts are sent again. Raises ``EmbeddingError`` where that is useless."""
        kind, reaction = error.kind, REACTIONS[error.kind]
        wait_s = pause(attempt % (RETRIES + 1), error.retry_after_s, self._jitter())
        hung, refused = kind is ProviderErrorKind.TIMEOUT, error.status in OF_CONTENTS
        if reaction.retry and wait_s is not None and not hung and (attempt + 1) % (RETRIES + 1):
            return wait_s
        if kind in _OF_TEXTS:
            raise self._named(error, of_texts=True)
        if wait_s is None or not (reaction.retry or refused):
            raise self._stopped(error)
        try:
            await self._model.embed([_TEXT])
        except ProviderError as own_error:
            raise self._stopped(own_error) from None
        if refused:  # a firewall in between answers 403 and 404 to contents, too
            kind = ProviderErrorKind.CONTENT_REFUSED
            raise self._named(ProviderError(kind, error.message, status=error.status), of_texts=True)
        rounds = ATTEMPTS if reaction.outage and not hung else 1
        if attempt + 1 >= rounds * (RETRIES + 1):
            # What takes more than a limit leaves may pass later: its case waits, and no other one for it.
            raise self._named(error, of_texts=True, outage=kind is ProviderErrorKind.RATE_LIMITED)
        return wait_s

    def _stopped(self, error: ProviderError) -> EmbeddingError:
        """Send nothing for a while."""
        if (permit := self._circuit.permit(self._clock())) is not None:
            self._fail(permit, error)
        out = self._circuit.state(self._clock()).circuit != "closed"  # a refusal of what the text says is no outage
        return self._named(error, outage=out, of_texts=not out)

    def _fail(self, permit: Permit, error: ProviderError) -> None:
        self._cause = error
        self._circuit.failed(permit, error, self._clock())

    async def _try(self, permit: Permit) -> None:
        try:
            await self._model.embed([_TEXT])
        except ProviderError as error:
            self._fail(permit, error)
        except BaseException:
            self._circuit.abandoned(permit)
            raise
        else:
            self._circuit.succeeded(permit, self._clock())

    def _named(self, error: ProviderError, *, of_texts: bool = False, outage: bool = False) -> EmbeddingError:
        lasting = REACTIONS[error.kind].breaker == "trips"
        what = f"embeddings of {self.name}"
        logged = f"{what}: {error if lasting else error.cause}"
        return EmbeddingError(f"{what}: {error}", of_texts=of_texts, logged=logged, outage=outage, lasting=lasting)
