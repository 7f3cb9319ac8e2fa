"""Steps of a long run: each with who acts, what it adds to the steps before it, its signs, and what it rests on.

Instrumentations repeat: a model's call carries the whole conversation again, a chain what its last step returned. So a
text belongs to the step that had it first, and stands in full there alone. Nothing is copied until a step is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import written
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.trace.span import Json, Message, Span, SpanKind, ToolCall
from sidejudge.scoring.trace.trace import Trace

MOST_STEPS: Final = 20_000
"""Steps of a run that are outlined; a run with more has no outline."""
_LINE: Final = 140
"""Characters of a line of the outline, about."""
_RESULT: Final = 60
_HEADING: Final = 16
"""Tokens of a step's heading and of the line between two steps, about."""
_BRIEF: Final = 160
"""Characters of a text that stands again wherever it is repeated: to point to it would take as many."""
_CARRY: Final = frozenset({SpanKind.LLM, SpanKind.AGENT, SpanKind.CHAIN, SpanKind.OTHER})
"""Kinds of steps that are given what others were given or returned."""
_BEFORE: Final = "in"
_AFTER: Final = "out"


@dataclass(frozen=True, slots=True)
class StepText:
    """One text of a step: who says it, before or after the step's work. ``same_as``: the step that had it first."""

    speaker: str
    value: Json
    place: str
    same_as: int | None = None


@dataclass(slots=True, kw_only=True)
class TrajectoryStep:
    """One step. ``number`` counts from 1 in the order of time; ``tokens`` is what it takes to show it in full.

    ``signs`` are what is known of it without a judge: words of ours, and what each weighs. ``rests_on`` are the
    numbers of the steps whose results it works with, or that asked for it.
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
        """Who acts: kind and name."""
        span = self.span
        name = span.tool.name if span.tool is not None else span.agent or span.name
        if span.kind is SpanKind.LLM:
            name = f"{span.agent}, {span.model}" if span.agent and span.model else span.agent or span.model or span.name
        return f"{span.kind.value} {label(name)}"

    def line(self) -> str:
        """The step in one line: who, what, result, signs."""
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
        """Its texts, one after the other, and where the others stand."""
        earlier: Counter[int] = Counter()
        for piece in self.pieces:
            if piece.same_as is None:
                yield f"{piece.speaker}: {written(piece.value)}"
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
        """Every text that may hold a quotation of this step: its own, and those of earlier steps that it was given."""
        yield from (written(piece.value) for piece in self.pieces)
        if self.span.error is not None:
            yield self.span.error


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """The steps of a run, ``tokens`` to show all of them in full, and ``recorded`` as they were sent, repeated."""

    steps: tuple[TrajectoryStep, ...]
    tokens: int
    recorded: int

    def __getitem__(self, number: int) -> TrajectoryStep:
        return self.steps[number - 1]

    def __contains__(self, number: object) -> bool:
        return type(number) is int and 1 <= number <= len(self.steps)


def trace_of(case: Case) -> Trace | None:
    """The trace of a case; of one from a file, its calls between question and answer. None where there is neither."""
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
    """Whether anything happened at a span: plain spans only where they say something or failed."""
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
            text = written(value)
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
    """Name what each step rests on: who asked for a call, and the results that a model reads."""
    asked: dict[int, int] = {}
    results: dict[str | None, list[int]] = {}
    for step in steps.values():
        span = step.span
        found = [piece.same_as for piece in step.pieces if piece.place == _BEFORE and piece.same_as is not None][-4:]
        if span.kind is SpanKind.LLM:
            found += results.pop(_above(trace, span), [])[-4:]
            for message in span.output_messages:
                asked.update({_call_key(call): step.number for call in message.tool_calls})
        elif span.tool is not None:
            if (asker := asked.get(_call_key(span.tool))) is not None:
                found.append(asker)
            results.setdefault(_above(trace, span), []).append(step.number)
        elif span.kind is SpanKind.AGENT:
            results.setdefault(_above(trace, span), []).append(step.number)
        step.rests_on = tuple(number for number in dict.fromkeys(found) if number != step.number)


def _above(trace: Trace, span: Span) -> str | None:
    """The nearest agent above a span."""
    return next((above.span_id for above in trace.ancestors(span) if above.kind is SpanKind.AGENT), None)


def _call_key(call: ToolCall) -> int:
    return hash((call.name, written(call.arguments)))


def _short(value: Json) -> str:
    return label(" ".join(written(value)[: 4 * _RESULT].split()), _RESULT)


def _result(piece: StepText) -> str:
    return f"as step {piece.same_as}" if piece.same_as is not None else _short(piece.value)
