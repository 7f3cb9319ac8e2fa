"""Steps of a long run, each with its actor, its new texts, its signs, and the steps that it rests on.

Instrumentations repeat texts: a model call carries the whole conversation again, a chain its last step's output. So a
text belongs to the first step that has it, and is shown in full only there. Nothing is copied until a step is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall
from sidejudge.scoring.trace.trace import Trace, from_above

MOST_STEPS: Final = 20_000
"""Most steps of a run with an outline; a run with more has none."""
_LINE: Final = 140
"""Approximate characters of a line of the outline."""
_RESULT: Final = 60
_HEADING: Final = 16
"""Approximate tokens of a step's heading and of the line between two steps."""
_BRIEF: Final = 160
"""Longest text, in characters, that is repeated in full, because a pointer to it would be as long."""
_CARRY: Final = frozenset({SpanKind.LLM, SpanKind.AGENT, SpanKind.CHAIN, SpanKind.OTHER})
"""Kinds of steps that carry inputs and outputs of other steps."""
_BEFORE: Final = "in"
_AFTER: Final = "out"


@dataclass(frozen=True, slots=True)
class StepText:
    """One text of a step with its speaker, before or after the work. ``same_as``: the step that had it first."""

    speaker: str
    value: Json
    place: str
    same_as: int | None = None


@dataclass(slots=True, kw_only=True)
class TrajectoryStep:
    """One step. ``number`` counts from 1 in the order of time; ``tokens`` is its length in full.

    ``signs`` are findings without a judge, in our words, each with its weight. ``rests_on`` are the numbers of the
    steps whose results it uses, or that requested it.
    """

    number: int
    span: Span
    pieces: tuple[StepText, ...] = ()
    tokens: int = 0
    recorded: int = 0
    signs: dict[str, float] = field(default_factory=dict)
    rests_on: tuple[int, ...] = ()

    @property
    def own(self) -> tuple[StepText, ...]:
        """The texts that no step had before."""
        return tuple(piece for piece in self.pieces if piece.same_as is None)

    @property
    def who(self) -> str:
        """The actor: kind and name."""
        span = self.span
        name = span.tool.name if span.tool is not None else span.agent or span.name
        if span.kind is SpanKind.LLM:
            name = f"{span.agent}, {span.model}" if span.agent and span.model else span.agent or span.model or span.name
        return f"{span.kind.value} {label(name)}"

    def line(self) -> str:
        """The step in one line: actor, action, result, signs."""
        said = [piece for piece in self.pieces if piece.place == _AFTER]
        given = next((piece for piece in self.own if piece.place == _BEFORE), None)
        what = "" if given is None else f" {_short(given.value)}"
        result = "".join(f" -> {_result(piece)}" for piece in said[:2])
        noted = f" [{'; '.join(self.signs)}]" if self.signs else ""
        return f"{self.number} {self.who}:{what}"[:_LINE] + f"{result}{noted} ({self.tokens} tokens)"

    def full(self) -> str:
        """The step with all its texts."""
        return "\n".join([f"=== step {self.number} · {self.who}", *self.body()])

    def body(self) -> Iterator[str]:
        """Its own texts in order, with pointers to the others."""
        earlier: Counter[int] = Counter()
        for piece in self.pieces:
            if piece.same_as is None:
                yield f"{piece.speaker}: {text_or_json(piece.value)}"
            elif piece.place == _AFTER:
                yield f"{piece.speaker}: (the same as in step {piece.same_as})"
            else:
                earlier[piece.same_as] += 1
        if earlier:
            yield f"(given besides: {sum(earlier.values())} of the texts that stand in earlier steps)"
        if self.span.error is not None:
            yield f"error: {self.span.error}"

    @property
    def quotable(self) -> Iterator[str]:
        """All texts that a quotation of this step may come from: its own, and those from earlier steps."""
        yield from (text_or_json(piece.value) for piece in self.pieces)
        if self.span.error is not None:
            yield self.span.error


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """The steps of a run; ``tokens`` is their length in full, ``recorded`` that with all repetitions."""

    steps: tuple[TrajectoryStep, ...]
    tokens: int
    recorded: int

    def __getitem__(self, number: int) -> TrajectoryStep:
        return self.steps[number - 1]

    def __contains__(self, number: object) -> bool:
        return type(number) is int and 1 <= number <= len(self.steps)


def trace_of(case: Case) -> Trace | None:
    """The trace of a case; from a file, its calls between question and answer. None where there is neither."""
    if case.trace is not None or case.tools_used is None:
        return case.trace
    last = len(case.tools_used) + 1
    run = Span(
        trace_id=case.case_id, span_id="0", parent_id=None, kind=SpanKind.AGENT, dialect="file", start_ns=0,
        end_ns=last, name=case.task or "run", input=case.input,
    )  # fmt: skip
    calls = [
        replace(run, span_id=str(at), parent_id="0", kind=SpanKind.TOOL, start_ns=at, end_ns=at, name=call.name,
                tool=call, input=None)
        for at, call in enumerate(case.tools_used, 1)
    ]  # fmt: skip
    answer = replace(
        run, span_id=str(last), parent_id="0", kind=SpanKind.LLM, start_ns=last, name="answer", input=None,
        output=case.model_output,
    )  # fmt: skip
    return Trace.of(case.case_id, [run, *calls, *([answer] if case.model_output is not None else [])], "batch")


def steps_of(trace: Trace) -> Trajectory:
    """The steps of a trace, without signs."""
    spans = [span for span in trace.spans if _is_step(span)]
    steps = {span.span_id: TrajectoryStep(number=number, span=span) for number, span in enumerate(spans, 1)}
    _give_texts(steps)
    _give_grounds(trace, steps)
    listed = tuple(steps.values())
    return Trajectory(
        steps=listed, tokens=sum(step.tokens for step in listed), recorded=sum(step.recorded for step in listed)
    )


def _is_step(span: Span) -> bool:
    """Whether a span is a step: plain spans only where they carry a text or failed."""
    says = span.input is not None or span.output is not None or span.input_messages or span.output_messages
    return (span.kind is not SpanKind.OTHER and span.kind is not SpanKind.EVALUATOR) or bool(says or span.error)


def _give_texts(steps: Mapping[str, TrajectoryStep]) -> None:
    """Give each step its texts, each text to the step that had it first, in the order of time."""
    order = [(step.span.start_ns, 0, step.number, step) for step in steps.values()]
    order += [(step.span.end_ns, 1, -step.number, step) for step in steps.values()]  # of two that end, the inner first
    order.sort(key=lambda each: each[:3])
    first: dict[int, int] = {}
    held: dict[str, list[StepText]] = {name: [] for name in steps}
    for _, is_end, _, step in order:
        said = _outputs(step.span) if is_end else _inputs(step.span)
        for speaker, value in said:
            text = text_or_json(value)
            if not text.strip():
                continue
            tokens = estimate(text)
            step.recorded += tokens
            owner = first.setdefault(hash(text.strip()), step.number)
            carried = not is_end and step.span.kind in _CARRY
            if owner == step.number or (len(text) <= _BRIEF and not carried):
                held[step.span.span_id].append(StepText(speaker, value, _AFTER if is_end else _BEFORE))
                step.tokens += tokens
            else:
                held[step.span.span_id].append(StepText(speaker, value, _AFTER if is_end else _BEFORE, owner))
    for name, step in steps.items():
        step.pieces = tuple(held[name])
        step.tokens += _HEADING + (estimate(step.span.error) if step.span.error is not None else 0)


def _inputs(span: Span) -> Iterator[tuple[str, Json]]:
    if span.tool is not None:
        yield "arguments", span.tool.arguments
        return
    if span.system_prompt:
        yield "system", span.system_prompt
    if span.input_messages:
        for message in span.input_messages:
            yield from _message(message)
    elif span.input is not None:
        yield "input", span.input


def _outputs(span: Span) -> Iterator[tuple[str, Json]]:
    if span.tool is not None:
        yield "result", span.tool.result
        if span.tool.error is not None and span.tool.error != span.error:
            yield "error", span.tool.error
        return
    if span.output_messages:
        for message in span.output_messages:
            yield from _message(message)
    elif span.output is not None:
        yield "output", span.output
    yield from (("document", text) for text in span.documents)


def _message(message: Message) -> Iterator[tuple[str, Json]]:
    name = f"{message.role} {label(message.name)}" if message.name else message.role
    if message.text:
        yield name, message.text
    yield from ((f"{name} calls {label(call.name)}", call.arguments) for call in message.tool_calls)


def _give_grounds(trace: Trace, steps: Mapping[str, TrajectoryStep]) -> None:
    """Set the steps that each step rests on: the requester of a call, and the results that a model reads."""
    asked: dict[int, int] = {}
    results: dict[str, list[int]] = {}
    above = agents_above(trace)
    for step in steps.values():
        span = step.span
        found = [piece.same_as for piece in step.pieces if piece.place == _BEFORE and piece.same_as is not None][-4:]
        if span.kind is SpanKind.LLM:
            found += results.pop(above.get(span.span_id, ""), [])[-4:]
            for message in span.output_messages:
                asked.update({_call_key(call): step.number for call in message.tool_calls})
        elif span.tool is not None:
            if (asker := asked.get(_call_key(span.tool))) is not None:
                found.append(asker)
            results.setdefault(above.get(span.span_id, ""), []).append(step.number)
        elif span.kind is SpanKind.AGENT:
            results.setdefault(above.get(span.span_id, ""), []).append(step.number)
        step.rests_on = tuple(number for number in dict.fromkeys(found) if number != step.number)


def agents_above(trace: Trace) -> Mapping[str, str]:
    """By the id of each span, the id of the nearest agent above it; "" without one."""
    return from_above(trace, "", lambda span, upper: span.span_id if span.kind is SpanKind.AGENT else upper)


def _call_key(call: ToolCall) -> int:
    return hash((call.name, text_or_json(call.arguments)))


def _short(value: Json) -> str:
    return label(" ".join(text_or_json(value)[: 4 * _RESULT].split()), _RESULT)


def _result(piece: StepText) -> str:
    return f"as step {piece.same_as}" if piece.same_as is not None else _short(piece.value)
