"""Trial: one closed trace on its way to its ending, and what is known of it so far."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from monitor.config.evaluators import Priority
from monitor.ingest.assembler import Closing
from monitor.ingest.outcomes import Reason
from monitor.ingest.sampler import Decision
from monitor.sessions.turns import SessionTurn

from .evaluation import Evaluation

log = logging.getLogger("sidejudge.pipeline")


@dataclass(slots=True, kw_only=True)
class EvaluationJob:
    """What is known of a trace so far. ``reason`` is why it ends without a hearing; ``before`` what was said earlier.

    ``chunks`` is how many of its parts were read; of a session, the number of the last turn. ``turn`` is what the trace
    is to a session.
    """

    closing: Closing
    chunks: int = 0
    story: dict[str, object] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None
    service: str | None = None
    scenario: str | None = None
    last_span_ns: int | None = None
    priority: Priority = "normal"
    decision: Decision | None = None
    hearing: Evaluation | None = None
    reason: Reason | None = None
    turn: SessionTurn | None = None
    lookups: tuple[tuple[bytes, bytes | None], ...] = ()

    @property
    def trace_id(self) -> bytes:
        return self.closing.trace_id

    @property
    def waits(self) -> bool:
        """Whether somebody has to be asked."""
        return self.hearing is not None and bool(self.hearing.open)

    def draw(self, share: float) -> float:
        """The third pass, for the rubrics that need the judge: the budget can pay for this share of such traces.

        What was drawn once stays drawn at the share that was in force then, however often late spans reopen it; that
        share is returned.
        """
        sampled = (self.before or {}).get("sampling") or {}
        told = sampled.get("judged_share")
        share = min(1.0, max(0.0, share if told is None else float(told)))
        if self.hearing is not None and self.decision is not None:
            self.hearing.draw(self.decision.thinned(share))
            self.story["sampling"] = {**self.sampled, "judged_share": share}
        return share

    @property
    def sampled(self) -> dict[str, object]:
        """What the story tells of how it was drawn."""
        decision = self.decision
        if decision is None:
            return {}
        told: dict[str, object] = {
            "probability": decision.probability,
            "selection": decision.selection,
            "rule": decision.rule,
        }
        return told if decision.upstream == 1.0 else {**told, "upstream": decision.upstream}


def fail(trial: EvaluationJob, error: Exception) -> None:
    """A bug of ours: it is logged, and the trace ends as an error."""
    log.error("could not judge a trace", extra={"trace_id": trial.trace_id.hex()}, exc_info=error)
    trial.reason, trial.hearing = Reason.ERROR, None
    trial.story["error"] = f"{type(error).__name__}: {error}"
