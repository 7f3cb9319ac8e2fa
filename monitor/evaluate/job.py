"""Job: the state of one closed trace between assembly and its result."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Final

from sidejudge.monitor.config.evaluators import Priority
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Decision, probability, threshold
from sidejudge.scoring.verdict.documents import SamplingDocument, TraceDocument

from .evaluation import Evaluation
from .result import SessionTurn

log = logging.getLogger("sidejudge.pipeline")

_ALL: Final = 1 << 62
"""More parts than a trace has."""


@dataclass(slots=True, kw_only=True)
class EvaluationJob:
    """The work on one trace. ``reason`` is why it ends unjudged; ``before`` is its stored earlier result.

    ``chunks`` counts the stored chunks that were read; of a session it is the number of the last turn. ``turn`` is the
    turn that the trace adds to its session.
    """

    closing: Closing
    chunks: int = 0
    details: TraceDocument = field(default_factory=TraceDocument)
    before: TraceDocument | None = None
    service: str | None = None
    scenario: str | None = None
    last_span_ns: int | None = None
    priority: Priority = "normal"
    decision: Decision | None = None
    evaluation: Evaluation | None = None
    reason: EndReason | None = None
    turn: SessionTurn | None = None
    lookups: tuple[tuple[bytes, bytes | None], ...] = ()

    @property
    def trace_id(self) -> bytes:
        return self.closing.trace_id

    @property
    def waits(self) -> bool:
        """Whether a backend has questions to answer."""
        return self.evaluation is not None and bool(self.evaluation.open)

    def draw(self, share: float) -> float:
        """The third sampling pass, for the rubrics that need the judge.

        Args:
            share: the share in [0, 1] of such traces that the budget can pay for.

        Returns:
            The share at which the trace is drawn: that of its first draw, however often late spans reopen it.
        """
        sampling = (self.before or {}).get("sampling") or {}
        earlier = sampling.get("judged_share")
        share = min(1.0, max(0.0, share if earlier is None else float(earlier)))
        if self.evaluation is not None and self.decision is not None:
            self.evaluation.draw(self.decision.thinned(share))
            self.details["sampling"] = {**self.sampled, "judged_share": share}
        return share

    @property
    def sampled(self) -> SamplingDocument:
        """How the trace was drawn, for its details."""
        decision = self.decision
        if decision is None:
            return {}
        sampling: SamplingDocument = {
            "probability": decision.probability,
            "selection": decision.selection,
            "rule": decision.rule,
        }
        if self.closing.thinned or self.drawn_before:
            sampling["load_rate"] = probability(max(self.closing.origin.threshold, self.drawn_before))
        return sampling if decision.upstream == 1.0 else {**sampling, "upstream": decision.upstream}

    @property
    def drawn_before(self) -> int:
        """The sampling threshold under load at which an earlier revision was drawn; 0 for none.

        The assembler knows it too, but not after a restart.
        """
        load_rate = ((self.before or {}).get("sampling") or {}).get("load_rate")
        return 0 if load_rate is None else threshold(min(1.0, max(0.0, load_rate)))


def give_up(job: EvaluationJob, reason: EndReason) -> None:
    """End a trace without reading it. An existing verdict stays."""
    job.chunks = _ALL
    job.reason = EndReason.LATE if job.closing.revision > 1 else reason
    if reason is EndReason.CRASHED:
        log.error(
            "gave up a trace: the process ended again and again while judging it",
            extra={"trace_id": job.trace_id.hex()},
        )


def fail(job: EvaluationJob, error: Exception) -> None:
    """Log an exception of our own; the trace ends with the reason *error*."""
    log.error("could not judge a trace", extra={"trace_id": job.trace_id.hex()}, exc_info=error)
    job.reason, job.evaluation = EndReason.ERROR, None
    job.details["error"] = f"{type(error).__name__}: {error}"
