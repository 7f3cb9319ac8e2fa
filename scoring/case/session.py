"""Session: several traces of one conversation, as one case.

Each trace is a turn: its last question and its answer. A client may send the whole history with every call; of a list
of messages only the user's last one belongs to the turn. A transcript in the trace takes precedence over both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sidejudge.scoring.trace.span import Completion, Json, ToolCall

from .case import Case, Utterance
from .conversation import question_of, transcript_turns
from .grounds import text_or_json

T = TypeVar("T")

_USER, _AGENT = "user", "agent"
_ROLES: Mapping[str | None, str] = {_AGENT: "assistant"}
_NOTHING: tuple[Json, ...] = (None, "", [], {})
_KEPT = (
    "case_id", "trace_id", "name", "task", "model_output", "expected_outcome", "system_prompt", "latency_e2e_ms",
    "latency_model_ms", "timed_out", "input_tokens", "output_tokens", "cost_usd", "model", "session_id", "user_id",
    "service", "environment", "evaluation_criteria_override", "complete", "completion", "content_captured",
    "capture_switch",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One trace of a conversation. ``started_ns`` is when its first span began, in ns since the epoch.

    ``thinned``: an upstream sampler drew traces one by one, so that turns of the conversation may be missing.
    """

    case: Case
    utterances: tuple[Utterance, ...]
    started_ns: int
    thinned: bool = False

    def to_json(self) -> dict[str, Json]:
        """The turn as JSON for the store; ``case`` is in the case format, without parts that only its trace needs."""
        case = self.case
        fields: dict[str, Json] = {name: getattr(case, name) for name in _KEPT}
        fields |= {
            "config": dict(case.config), "metadata": dict(case.metadata), "tags": list(case.tags),
            "scenario": case.scenario if isinstance(case.scenario, str | dict) else None,
            "agents_called": None if case.agents_called is None else list(case.agents_called),
            "tools_used": None if case.tools_used is None else [_tool(call) for call in case.tools_used],
            "context": None if case.context is None else list(case.context),
        }  # fmt: skip
        return {
            "case": {name: value for name, value in fields.items() if value is not None or name == "model_output"},
            "error": case.error, "thinned": self.thinned,
            "said": [{"speaker": one.speaker, "text": one.text, "at": one.at} for one in self.utterances],
        }  # fmt: skip


def turn_of(case: Case, started_ns: int, *, thinned: bool = False) -> Turn:
    """The turn made from a trace's case."""
    own = isinstance(case.transcript, tuple) or (case.transcript is not None and case.transcript != case.input)
    if own:
        utterances = transcript_turns(case)
    else:
        question = question_of(case)
        utterances = (Utterance(question, _USER),) if question else ()
    answer = "" if case.model_output in _NOTHING else text_or_json(case.model_output)
    if answer and not (utterances and utterances[-1].text == answer):
        utterances = (*utterances, Utterance(answer, _AGENT))
    return Turn(case=case, utterances=utterances, started_ns=started_ns, thinned=thinned)


def conversation(case_id: str, turns: Sequence[Turn], completion: Completion) -> Case:
    """One case from all turns, in order of time. Needs at least one turn.

    The transcript consists of the turns, the output is the last turn's answer. Agents, tools and documents come from
    all turns; times, tokens and costs are sums (unknown where one is); of anything else the first known value counts.
    ``complete`` only when every turn is, the conversation was not cut short and no upstream sampler drew among its
    traces.
    """
    turns = sorted(turns, key=lambda turn: (turn.started_ns, turn.case.case_id))
    cases = [turn.case for turn in turns]
    utterances = tuple(utterance for turn in turns for utterance in turn.utterances)
    last = cases[-1]
    metadata: dict[str, Json] = {}
    for case in cases:
        metadata = {**case.metadata, **metadata}
    return Case(
        case_id=case_id,
        trace_id=None,
        model_output=last.model_output,
        input=_messages(utterances[:-1] if last.model_output not in _NOTHING else utterances),
        transcript=utterances or None,
        task=_first(case.task for case in cases),
        expected_outcome=_first(case.expected_outcome for case in reversed(cases)),
        config=_first(case.config or None for case in cases) or {},
        scenario=_first(case.scenario for case in cases),
        agents_called=_joined(cases, lambda case: case.agents_called),
        tools_used=_joined(cases, lambda case: case.tools_used),
        context=_once(_joined(cases, lambda case: case.context)),
        system_prompt=_first(case.system_prompt for case in cases),
        latency_e2e_ms=_sum([case.latency_e2e_ms for case in cases]),
        latency_model_ms=_sum([case.latency_model_ms for case in cases]),
        timed_out=any(case.timed_out for case in cases),
        input_tokens=_sum([case.input_tokens for case in cases]),
        output_tokens=_sum([case.output_tokens for case in cases]),
        cost_usd=_sum([case.cost_usd for case in cases]),
        model=_first(case.model for case in reversed(cases)),
        tags=_once(tuple(tag for case in cases for tag in case.tags)) or (),
        metadata=metadata,
        evaluation_criteria_override=_first(case.evaluation_criteria_override for case in cases),
        session_id=cases[0].session_id,
        user_id=_first(case.user_id for case in cases),
        service=cases[0].service,
        environment=cases[0].environment,
        name=_first(case.name for case in cases),
        error=_first(case.error for case in cases),
        complete=completion == "idle" and all(turn.case.complete and not turn.thinned for turn in turns),
        completion=completion,
        content_captured=all(case.content_captured for case in cases),
        capture_switch=_first(case.capture_switch for case in cases),
    )


def _messages(utterances: Iterable[Utterance]) -> Json:
    return [{"role": _ROLES.get(one.speaker, one.speaker or _USER), "content": one.text} for one in utterances]


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def _joined(cases: Iterable[Case], field: Callable[[Case], tuple[T, ...] | None]) -> tuple[T, ...] | None:
    known = [found for case in cases if (found := field(case)) is not None]
    return tuple(value for found in known for value in found) if known else None


def _once(values: tuple[T, ...] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(dict.fromkeys(values))


def _sum(values: Sequence[T | None]) -> T | None:
    return None if any(value is None for value in values) else sum(values)  # type: ignore[arg-type,return-value]  # none is None here


def _tool(call: ToolCall) -> Json:
    fields: dict[str, Json] = {
        "name": call.name, "arguments": call.arguments, "result": call.result, "error": call.error,
        "call_id": call.call_id, "handoff": call.handoff,
    }  # fmt: skip
    return fields
