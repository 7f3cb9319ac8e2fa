"""Chunks: a run's lines in pieces of bounded size, each judged whole by one of several processes.

Within one, several cases are judged at a time, and their verdicts written in the order of the cases.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from sidejudge.integrations.embed import EmbeddingError
from sidejudge.monitor.evaluate.backends import (
    OUTAGE,
    OVER_BUDGET,
    EmbeddingBackendProtocol,
    EmbeddingsOutError,
    JudgeAccount,
    JudgeBackendProtocol,
    PostponedError,
)
from sidejudge.monitor.evaluate.evaluator import Evaluation, Evaluator, JudgementsByMetric
from sidejudge.monitor.offline.engine import ElsewhereError
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.questions.question import NoAnswer
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.verdict import Verdict

from .case_lines import NumberedLine
from .request import Waits
from .tally import RecordedRemarks, ScoreTally
from .verdict_file import VerdictOutput

CHUNK_LINES: Final = 512
CHUNK_BYTES: Final = 1024 * 1024
"""What a chunk holds at most, but for one line more: large enough that sending it costs little, small beside memory."""
GROUP_LINES: Final = 64
GROUP_BYTES: Final = 256 * 1024
"""What is judged stage by stage at a time, likewise: small beside a processor's caches. 512 lines took 5 % longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedChunk:
    """The results of some lines: their verdicts as bytes, remarks to report, and the bytes read so far.

    ``number`` is that of the last line. ``out`` is why judge or embeddings could not be asked any more, and the lines
    from there on were not judged.
    """

    verdicts: bytes
    remarks: RecordedRemarks
    tally: ScoreTally
    read: int
    number: int
    out: JudgeOutError | EmbeddingError | None = None


@dataclass(slots=True)
class ChunkVerdicts(VerdictOutput):
    """Takes the verdicts of one chunk; none exists yet."""

    blocks: list[bytes] = field(default_factory=list)

    def append(self, verdict: bytes) -> None:
        self.blocks.append(verdict)


def chunks(
    lines: Iterable[NumberedLine], most: int = CHUNK_LINES, most_bytes: int = CHUNK_BYTES
) -> Iterator[Sequence[NumberedLine]]:
    """The lines, in chunks."""
    chunk: list[NumberedLine] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line.text or b"")
        if len(chunk) >= most or size >= most_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


T = TypeVar("T")
R = TypeVar("R")

LOOK_S = 0.25
"""How often it is looked whether judge or embeddings are back."""
LASTING = ("authentication failed", "model not found", "credit exhausted", "litellm is not installed")
"""Outages that end only when somebody acts."""
_ATTEMPTS = 3


class JudgeOutError(SidejudgeError):
    """The judge cannot be asked, and waiting is useless. Earlier verdicts stay."""


async def in_order(
    source: Iterable[T], work: Callable[[T], Awaitable[R]], done: Callable[[T, R], None], at_most: int, *, out_s: float
) -> None:
    """Work on ``at_most`` items at a time, and take the results in the order of the items.

    ``work`` is called in that order too. The source may block; it is read in a thread. Where a model is out, requests
    under way have ``out_s`` seconds to end: they are paid for, and a run that goes on finds what they answered.
    """
    under_way: deque[tuple[T, asyncio.Future[R]]] = deque()
    items: Iterator[T] = iter(source)
    try:
        while (found := await asyncio.to_thread(_next, items)) is not None:
            under_way.append((found[0], asyncio.ensure_future(work(found[0]))))
            while len(under_way) >= at_most or (under_way and under_way[0][1].done()):
                item, task = under_way.popleft()
                done(item, await task)
        while under_way:
            item, task = under_way.popleft()
            done(item, await task)
    except (JudgeOutError, EmbeddingError):
        if under_way:
            await asyncio.wait([task for _, task in under_way], timeout=out_s)
        raise
    finally:
        for _, task in under_way:
            task.cancel()
        await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)


def _next(items: Iterator[T]) -> tuple[T] | None:
    return next(((item,) for item in items), None)


async def finish(
    evaluator: Evaluator, begin: Callable[[], Evaluation], waits: Waits, *, run: int | None = None
) -> Evaluation:
    """An evaluation at which nothing is open. While judge or embeddings are unreachable it waits, as ``waits`` has it.

    ``run`` is that of ``JudgeAccount``.

    Raises ``JudgeOutError`` or ``EmbeddingError`` when the outage lasts, the first also where the budget is spent.
    """
    judge = evaluator.others.judge if evaluator.others is not None else None
    embedding = evaluator.others.embedding if evaluator.others is not None else None
    began = time.monotonic()
    waits_until = began + waits.judge_s
    attempt = 0
    judgements: JudgementsByMetric = {}
    account = JudgeAccount(run=run, waits=True)
    while True:
        evaluation = await asyncio.to_thread(begin)
        evaluation.resume(judgements)
        try:
            await evaluator.finish(evaluation, lambda: _admitted(judge), account)
        except PostponedError as error:
            judgements = evaluation.judgements
            if isinstance(error, EmbeddingsOutError):
                until = began + waits.embedding_s  # beyond it, texts that fail while others are answered are at fault
                account.waits = await _until_answering(embedding, until) or time.monotonic() < until
            else:
                await _until_back(judge, waits_until)
            continue
        over_budget = next((why for why in evaluation.failures if why.startswith(OVER_BUDGET)), None)
        if over_budget is not None:
            raise JudgeOutError(over_budget)
        if not any(why.startswith(OUTAGE) for why in evaluation.failures):
            return evaluation
        attempt += judge is None or judge.outage is None  # an outage is waited for, and not counted
        if attempt >= _ATTEMPTS:
            return evaluation
        judgements = evaluation.judgements
        await _until_back(judge, waits_until)


async def reached(
    evaluator: Evaluator, case: Case, names: Sequence[str], waits: Waits, *, run: int | None = None
) -> tuple[Verdict, ...]:
    """The verdicts of a case for which somebody has to be waited for. Raises as ``finish``."""
    try:
        evaluation = await finish(evaluator, partial(evaluator.open, case, names), waits, run=run)
        return await asyncio.to_thread(evaluation.verdicts, created_at=iso_time(time.time_ns()))
    except (JudgeOutError, EmbeddingError, ElsewhereError):
        raise
    except Exception as error:  # noqa: BLE001  # a bug must cost one case its value, not a million cases their run
        return evaluator.failed(case, names, error, created_at=iso_time(time.time_ns()))


def _admitted(judge: JudgeBackendProtocol | None) -> NoAnswer | None:
    if judge is not None and judge.outage is not None:
        raise PostponedError
    return None


async def _until_back(judge: JudgeBackendProtocol | None, until: float) -> None:
    while judge is not None and (why := judge.outage) is not None:
        if why.startswith(LASTING) or time.monotonic() >= until:
            raise JudgeOutError(judge.outage_cause or why)
        await asyncio.sleep(LOOK_S)


async def _until_answering(embedding: EmbeddingBackendProtocol | None, until: float) -> bool:
    """Whether they were out for all. Raises ``EmbeddingError`` where they stay so."""
    was_out = False
    while embedding is not None and (out := embedding.outage) is not None:
        if out.lasting or time.monotonic() >= until:
            raise out
        was_out = True
        await asyncio.sleep(LOOK_S)
    return was_out
