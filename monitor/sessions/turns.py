"""Session turns: turns a trace into the turn that is kept of it, and the turns of a session into one case."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sidejudge.integrations.cases.fields import case_of
from sidejudge.monitor.evaluate.result import SessionIdentity, SessionTurn
from sidejudge.monitor.ingest.sampler import Decision
from sidejudge.monitor.route.router import Router
from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.case.session import Turn, conversation, turn_of
from sidejudge.scoring.trace.loop_guard import evaluator_traffic
from sidejudge.scoring.trace.span import Completion, JsonRecord
from sidejudge.scoring.verdict.documents import TraceDocument

from .windows import draw

log = logging.getLogger("sidejudge.pipeline")

MAX_ID = 200
"""Characters of a session id; what is longer is taken for none. Langfuse and its SDKs hold to the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurns:
    """How sessions are drawn and routed. ``rate`` is the share of them that is judged, in (0, 1].

    ``hash_key`` is secret, so that nobody chooses a session id that is drawn; empty: a public one.
    """

    rate: float
    router: Router
    hash_key: bytes = b""

    def draw(self, identity: SessionIdentity) -> Decision:
        """Whether a session is judged."""
        return draw(identity, self.rate, self.hash_key)

    def turn(
        self, case: Case, *, started_ns: int, ended_ns: int, thinned: bool, before: TraceDocument | None
    ) -> SessionTurn | None:
        """The turn of a trace; None when it belongs to no session that is judged. Never raises."""
        own = evaluator_traffic(case.service, case.environment, tags=case.tags) is not None
        if case.session_id is None or len(case.session_id) > MAX_ID or own:
            return None
        service, environment = (name and name[:MAX_ID] for name in (case.service, case.environment))
        identity = SessionIdentity(service, environment, case.session_id)
        decision = self.draw(identity)
        if not decision.kept:
            return None
        turn = turn_of(case, started_ns, thinned=thinned).to_json()
        drawn = {"started_ns": started_ns, "ended_ns": ended_ns, "probability": decision.probability}
        try:
            text = json.dumps({**turn, **drawn}, separators=(",", ":"))
        except (RecursionError, ValueError, TypeError) as error:
            log.warning("a turn could not be kept", extra={"trace_id": case.trace_id, "cause": type(error).__name__})
            return None
        former = (before or {}).get("session")
        return SessionTurn(identity=identity, text=text, former=bytes.fromhex(former) if former else None)

    def case(
        self, key: bytes, stored: Sequence[JsonRecord], completion: Completion
    ) -> tuple[Case, Decision, list[str]]:
        """The conversation that these turns are, how it was drawn, and the ids of its traces in order of time."""
        turns = sorted((_read(each) for each in stored), key=lambda turn: (turn.started_ns, turn.case.case_id))
        case = conversation(key.hex(), turns, completion)
        decision = self.draw(SessionIdentity(case.service, case.environment, case.session_id or ""))
        if decision.probability is not None:
            # The rate may have been another when the session began: it is here because it was drawn at each of them.
            least = min(decision.probability, *(float(each["probability"]) for each in stored))
            decision = replace(decision, probability=least, base_probability=least)
            case = replace(case, sampling_probability=least)
        return case, decision, [turn.case.trace_id or "" for turn in turns]


def _read(stored: JsonRecord) -> Turn:
    case = replace(case_of(stored["case"]), error=stored["error"])
    utterances = tuple(Utterance(one["text"], one["speaker"], one["at"]) for one in stored["said"])
    return Turn(case=case, utterances=utterances, started_ns=int(stored["started_ns"]), thinned=bool(stored["thinned"]))
