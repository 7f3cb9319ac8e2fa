"""Signs of a step that need no judge: failures, repetitions, new values, and the grounds of the answer.

A sign is no verdict. It shows where to look first, and how much there is to find.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.lexical.lexicon import STOPWORDS
from sidejudge.scoring.metrics.answer_failure import answer_failure, sole_text
from sidejudge.scoring.metrics.run_ending import top
from sidejudge.scoring.metrics.run_steps import key_of
from sidejudge.scoring.metrics.tool_failure import failure_of
from sidejudge.scoring.metrics.trajectory_steps import Trajectory, TrajectoryStep, agents_above, steps_of, trace_of
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.trace.span import Json, SpanKind
from sidejudge.scoring.trace.trace import Trace

from . import run_health

Sign: TypeAlias = tuple[TrajectoryStep, str, float]
FAILED: Final = "failed"
FAILED_AGAIN: Final = "failed as before"
AGAIN: Final = "equal call again"
SELDOM_USED: Final = "calls a tool that is seldom used"
ASKS_AGAIN: Final = "asks for an equal call again"
NEW_FIGURE: Final = "states what stands nowhere before"
UNASKED: Final = "asks for what stands nowhere before"
LOST: Final = "nothing of the report before it comes again"
FINAL: Final = "the run's answer"
PLAN: Final = "first step of its agent"
LAST: Final = "last step of its agent"
RECOVERY: Final = "follows a failure"
MISPLACED: Final = "states a result's figure of something else"
UNUSED: Final = "states no figure of the results before it"
ORIGIN: Final = "the answer rests on it"
DELEGATES: Final = "hands work over"
_ELSEWHERE: Final = frozenset({
    "telemetry", "within_usual", "within_budget", "results_used", "tool_success", "step_success", "error_variety",
    "no_repetition",
})  # fmt: skip
"""Metrics of run health whose signs show no error at a step, flag too many steps, or are computed anew here."""
_TOKEN: Final = re.compile(r"[^\W_]+(?:[.,:/@_-][^\W_]+)*")
_DIGIT: Final = re.compile(r"\d")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n")
_NAME: Final = re.compile(r"(?<=[^.!?\s]\s)[A-Z][a-z]{3,}")
"""Names, recognised by their capital within a sentence."""
_LONGEST: Final = 200_000
"""Most characters of one text that are searched for words."""
_SELDOM: Final = 20
"""A tool is seldom used if at most one of this many calls goes to it."""
_RARE: Final = 3
"""Most steps with a word for it to mark a step."""


def trajectory(case: Case) -> Trajectory:
    """The steps of a case's run with their signs. Call by ``case.once(trajectory)``."""
    trace = trace_of(case)
    if trace is None:
        return Trajectory(steps=(), tokens=0, recorded=0)
    found = steps_of(trace)
    for step, sign, weight in _signs(case, trace, found):
        step.signs[sign] = max(weight, step.signs.get(sign, 0.0))
    return found


def _signs(case: Case, trace: Trace, run: Trajectory) -> Iterator[Sign]:
    yield from _failures(run.steps)
    yield from _repeats(run)
    yield from _seldom_used(run.steps)
    yield from _of_metrics(case, run)
    yield from _places(trace, run.steps)
    yield from _words(case, run)


def _failures(steps: Sequence[TrajectoryStep]) -> Iterator[Sign]:
    """Failed steps, the first of a kind weighing most; and the model step after each."""
    seen: Counter[str] = Counter()
    failed = False
    for step in steps:
        span = step.span
        why = failure_of(span.tool) if span.tool is not None else None
        why = why or span.error
        if why is None and span.kind is SpanKind.AGENT:
            why = answer_failure(sole_text(span.output), span.input)
        if why is not None:
            kind = re.sub(r"\d+", "#", f"{step.who} {why}"[:200])
            seen[kind] += 1
            again = seen[kind] > 1
            yield step, FAILED_AGAIN if again else FAILED, 3.0 / seen[kind] ** 0.5
            failed = True
        elif failed and span.kind is SpanKind.LLM:
            yield step, RECOVERY, 1.5
            failed = False


def _repeats(run: Trajectory) -> Iterator[Sign]:
    """Equal calls with equal results, and the model steps that requested them."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for step in run.steps:
        call = step.span.tool
        if call is None or call.arguments is None:
            continue
        key = (*key_of(call), text_or_json(call.result)[:500])
        seen[key] += 1
        if seen[key] > 1:
            yield step, AGAIN, 2.5 / (seen[key] - 1) ** 0.5
            for ground in step.rests_on:
                if run[ground].span.kind is SpanKind.LLM:
                    yield run[ground], ASKS_AGAIN, 2.5 / (seen[key] - 1) ** 0.5


def _seldom_used(steps: Sequence[TrajectoryStep]) -> Iterator[Sign]:
    """The model steps that call a tool that the run seldom calls."""
    asked = ((step, message) for step in steps for message in step.span.output_messages)
    calls = [(step, call.name) for step, message in asked for call in message.tool_calls]
    counts = Counter(name for _, name in calls)
    for step, name in calls:
        if counts[name] * _SELDOM <= len(calls):
            yield step, SELDOM_USED, 2.0


def _of_metrics(case: Case, run: Trajectory) -> Iterator[Sign]:
    by_id = {step.span.span_id: step for step in run.steps}
    for metric in run_health.RUBRIC.metrics:
        result = metric.start(case) if metric.id not in _ELSEWHERE else None
        listed = result.details.get("signs") if isinstance(result, Scored) else None
        for each in listed if isinstance(listed, list) else ():
            if (step := by_id.get(each.get("span_id"))) is not None:
                yield step, str(each.get("sign")), 2.5


def _places(trace: Trace, steps: Sequence[TrajectoryStep]) -> Iterator[Sign]:
    """Steps that matter by their position: plans, endings, hand-overs."""
    main = top(trace)
    above = agents_above(trace)
    by_agent: dict[str, list[TrajectoryStep]] = {}
    for step in steps:
        span = step.span
        if span.kind is SpanKind.LLM:
            by_agent.setdefault(above.get(span.span_id, ""), []).append(step)
            if any(call.handoff for message in span.output_messages for call in message.tool_calls):
                yield step, DELEGATES, 1.0
        elif span.kind is SpanKind.AGENT and span is not main:
            yield step, DELEGATES, 1.0
    for agent, asked in by_agent.items():
        leads = main is not None and agent in (main.span_id, "")
        yield asked[0], PLAN, 3.0 if leads else 0.8
        yield asked[-1], LAST, 2.0 if leads else 1.0
        if not leads and _ignores(asked[-1], _result_figures(trace, agent)):
            yield asked[-1], UNUSED, 2.5
    models = [step for step in steps if step.span.kind is SpanKind.LLM]
    if models:
        yield max(models, key=lambda step: step.span.end_ns), FINAL, 4.0


def _ignores(last: TrajectoryStep, found: frozenset[str]) -> bool:
    """Whether the last step of an agent states none of the figures in its results."""
    said = {term for piece in last.pieces if piece.place == "out" for term in _terms(piece.value)}
    return bool(found) and not found & said


def _result_figures(trace: Trace, agent: str | None) -> frozenset[str]:
    """The figures in the results of the tools directly below an agent."""
    results = [span.tool.result for span in trace.children.get(agent, ()) if span.tool is not None]
    return frozenset(term for result in results for term in _terms(result) if _is_figure(term))


def _words(case: Case, run: Trajectory) -> Iterator[Sign]:
    """Figures and names that a model introduces or loses, and the origins of the answer's.

    A figure that no earlier task, result or message held is calculated or made up. A call with such a figure asks for
    something that was not meant.
    """
    first: dict[str, int] = dict.fromkeys(_terms(case.input) | _terms(case.system_prompt), 0)
    stated: dict[str, list[int]] = {}
    last: dict[str, int] = {}
    for step in run.steps:
        before, after = _terms_of(step, "in"), _terms_of(step, "out")
        figures = {term for term in before | after if _is_figure(term)}
        if step.span.tool is not None and any(_is_figure(term) and term not in first for term in before):
            yield step, UNASKED, 1.5
        for term in before:
            first.setdefault(term, step.number)
        if step.span.kind is SpanKind.LLM:
            if any(_is_figure(term) and term not in first for term in after):
                yield step, NEW_FIGURE, 2.5
            for term in after:
                stated.setdefault(term, []).append(step.number)
        for term in after:
            first.setdefault(term, step.number)
        last.update(dict.fromkeys(figures, step.number))
        if step.span.kind is SpanKind.LLM and _is_misplaced(run, step, first):
            yield step, MISPLACED, 2.5
    yield from _origins(case, run, first, stated)
    yield from _losses(run, last)


def _is_misplaced(run: Trajectory, step: TrajectoryStep, first: Mapping[str, int]) -> bool:
    """Whether a step attributes a result's figure to something that the result does not name."""
    texts = [piece.value[:_LONGEST] for piece in step.own if piece.place == "out" and isinstance(piece.value, str)]
    for sentence in (each for text in texts for each in _SENTENCE.split(text)):
        names = {name.casefold() for name in _NAME.findall(sentence)}
        if not any(first.get(name, step.number) < step.number for name in names):
            continue
        origins = {first.get(term, 0) for term in _terms(sentence) if _is_figure(term)} - {0, step.number}
        for origin in (run[number] for number in origins):
            if origin.span.tool is not None and all(names.isdisjoint(_terms(each.value)) for each in origin.pieces):
                return True
    return False


def _origins(
    case: Case, run: Trajectory, first: Mapping[str, int], stated: Mapping[str, Sequence[int]]
) -> Iterator[Sign]:
    """The model steps that carry a statement of the answer, and the steps that brought it in."""
    wanted = _terms(case.model_output)
    weights: dict[int, float] = {}
    for term in sorted(wanted):  # sums of floats go by their order, and equal ones are to stay equal
        carriers = stated.get(term, ())
        telling = (1.0 if _is_figure(term) else 0.5) / max(1.0, len(carriers) / _RARE)
        for carrier in carriers[:_RARE]:
            weights[carrier] = weights.get(carrier, 0.0) + telling
        if (origin := first.get(term, 0)) not in (0, *carriers):
            weights[origin] = weights.get(origin, 0.0) + telling / 2
    for number, weight in weights.items():
        yield run[number], ORIGIN, min(2.0, 0.5 + weight)


def _losses(run: Trajectory, last: Mapping[str, int]) -> Iterator[Sign]:
    """The model steps after a sub-agent's report at which all of its figures are lost for good."""
    for step in run.steps:
        if step.span.kind is not SpanKind.LLM:
            continue
        for ground in step.rests_on:
            if run[ground].span.kind is SpanKind.AGENT:
                figures = {term for piece in run[ground].pieces if piece.place == "out" for term in _terms(piece.value)
                           if _is_figure(term)}  # fmt: skip
                if not figures or all(last.get(term, 0) < step.number for term in figures):
                    yield step, LOST, 2.5


def _terms_of(step: TrajectoryStep, place: str) -> frozenset[str]:
    return frozenset().union(*(_terms(piece.value) for piece in step.own if piece.place == place))


def _terms(value: Json) -> frozenset[str]:
    """Figures of two digits or more, ids, and uncommon words."""
    if value is None:
        return frozenset()
    found = set(_TOKEN.findall(text_or_json(value)[:_LONGEST].casefold())) - STOPWORDS
    return frozenset([term for term in found if len(term) > 3 or _is_figure(term)])


def _is_figure(term: str) -> bool:
    return len(term) > 1 and _DIGIT.search(term) is not None
