"""Conformance checks for metrics, rubrics, dialects, sinks and notifiers, for a plugin's author to call in pytest.

    from sidejudge.testing import check_metric

    def test_my_metric_conforms():
        check_metric(my_function)

Each raises ``AssertionError`` with the fault.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import GeneratorType
from typing import Final

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.dialects.reading import Dialect
from sidejudge.integrations.notify.webhook import notice_record
from sidejudge.integrations.python_metrics.process import result_of
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.config.read_files import ReadFiles
from sidejudge.monitor.config.rubric_declarations import read_declarations
from sidejudge.monitor.config.rubric_sources import LangfusePrompts, sources
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import nobody, score
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import NoValueError
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.questions.question import Begun, NoAnswer, Question, Steps, run
from sidejudge.scoring.result.result import Failed, NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import Span, ToolCall
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score import score_name

__all__ = [
    "CASES", "NOTICES", "check_dialect", "check_metric", "check_notifier", "check_rubric", "check_sink", "verdicts",
]  # fmt: skip

_RESULTS: Final = (Scored, NotApplicable, Unavailable, Failed)
_ID: Final = re.compile(r"[a-z][a-z0-9_-]*")
_AT: Final = "2026-01-01T00:00:00Z"
CASES: Final[Mapping[str, Case]] = {
    "empty": Case(case_id="empty", model_output=None),
    "text": Case(case_id="text", model_output="It is on its way.", input="Where is my parcel?", latency_e2e_ms=900.0),
    "json": Case(case_id="json", model_output={"answer": [1, None, {"a": "b"}]}, expected_outcome={"answer": [1]}),
    "broken": Case(case_id="broken", model_output="\ud800\x00{[", input=[], complete=False, completion="deadline"),
    "large": Case(case_id="large", model_output="word " * 50_000, input="x" * 100_000),
    "tools": Case(
        case_id="tools", model_output="done", tools_used=(ToolCall(name="a", arguments={"b": 1}, error="no"),),
        agents_called=("desk",), metadata={"task": "qa", "n": 1}, cost_usd=0.01, input_tokens=10, output_tokens=2,
    ),
}  # fmt: skip
"""Cases that a metric has to cope with: empty, texts, JSON, damaged, large, and with tools."""


def check_metric(
    metric: Metric | Callable[[Case], object],
    cases: Iterable[Case] = tuple(CASES.values()),
    *,
    passes: Sequence[str] = (),
    bounds: tuple[float, float | None] = (0.0, 1.0),
) -> None:
    """Check that a metric has a card, copes with every case, stays in bounds, and gives equal results on equal cases.

    Args:
        metric: A metric, or a function of a case, as ``python:`` names one. It runs in this process, without a limit.
        cases: The cases that it has to cope with.
        passes: The passing texts of a function that returns texts, as in its declaration.
        bounds: The least and the largest value of a function that returns numbers, as in its declaration.
    """
    if not isinstance(metric, Metric):
        metric = _declared(metric, passes, bounds)
    assert _ID.fullmatch(metric.id), f"id {metric.id!r}: lower-case letters, digits, '_' and '-', a letter first"
    for field in ("title", "meaning", "formula", "source", "undefined"):
        assert getattr(metric, field).strip(), f"{metric.id}: {field} is empty"
    low, high = metric.bounds
    assert high is None or low < high, f"{metric.id}: bounds {metric.bounds} are empty"
    for case in cases:
        first, second = _result(metric, case), _result(metric, case)
        assert first == second, f"{metric.id} is {first} and then {second} on the case {case.case_id}"
        if isinstance(first, Scored):
            assert math.isfinite(first.value), f"{metric.id}: {first.value} of {case.case_id}"
            inside = low - 1e-9 <= first.value and (high is None or first.value <= high + 1e-9)
            assert inside, f"{metric.id}: {first.value} of {case.case_id} lies outside of {metric.bounds}"
        elif not isinstance(first, NotApplicable):
            assert first.reason.strip(), f"{metric.id} gives no reason for {first.status} of {case.case_id}"


def _result(metric: Metric, case: Case) -> Result:
    """A metric's result where nobody answers its questions; each must be one for a judge or of another known kind."""

    def answer(question: Question) -> NoAnswer:
        requests(case, [question], context_tokens=1_000_000)
        return NoAnswer("nobody answers in this test")

    try:
        begun = metric.measure(case)
        found = run({metric.id: begun}, answer).results[metric.id] if isinstance(begun, GeneratorType) else begun
    except AssertionError:
        raise
    except NoValueError as ended:
        found = ended.result
    except Exception as error:
        cause = f"{metric.id} raises {type(error).__name__} on the case {case.case_id}: {error}"
        remedy = "return NotApplicable or Unavailable with a reason where there is nothing to measure"
        raise AssertionError(f"{cause}; {remedy}") from error
    assert isinstance(found, _RESULTS), f"{metric.id} returns {type(found).__name__} of {case.case_id}, no result"
    return found


def _declared(function: Callable[[Case], object], passes: Sequence[str], bounds: tuple[float, float | None]) -> Metric:
    """The metric declared from a function."""
    assert callable(function), f"a {type(function).__name__} is neither a metric nor a function of a case"
    name = re.sub(r"[^a-z0-9_-]+", "_", getattr(function, "__name__", type(function).__name__).lower()).strip("_")

    def measure(case: Case) -> Begun:
        found = function(case)
        return _steps(found, passes) if isinstance(found, GeneratorType) else _returned(found, passes)

    return Metric(
        id=name, title=name, meaning=f"what {name} returns", formula=name, source=name, undefined="it says so",
        measure=measure, bounds=bounds,
    )  # fmt: skip


def _returned(value: object, passes: Sequence[str]) -> Result:
    found = result_of(value, passes)
    assert found is value or not isinstance(found, Failed), str(found.reason)
    return found


def _steps(begun: GeneratorType[object, object, object], passes: Sequence[str]) -> Steps:
    """The steps of a function that asks: one question at a time, or several."""
    try:
        requested = next(begun)
        while True:
            single = isinstance(requested, Question)
            questions = (requested,) if single else requested
            assert isinstance(questions, list | tuple), f"the function yielded {requested!r}, which is no question"
            assert all(isinstance(each, Question) for each in questions), f"{requested!r} holds what is no question"
            replies = yield tuple(questions)
            requested = begun.send(replies[0] if single else replies)
    except StopIteration as done:
        return _returned(done.value, passes)


def check_rubric(rubric: Rubric | Mapping[str, object], cases: Iterable[Case] = tuple(CASES.values())) -> None:
    """Check that a rubric's metrics conform, its scores have unique names, and every case gets a verdict.

    Args:
        rubric: A rubric; or a map that declares one, as under its name in a configuration; or a map of such maps by
            name. Files and functions that it names are looked for in the working directory.
        cases: The cases that it has to cope with.
    """
    if not isinstance(rubric, Rubric):
        for each in _compiled(rubric):
            check_rubric(each, cases)
        return
    ids = list(rubric.metric_ids)
    assert len(set(ids)) == len(ids), f"{rubric.id}: a metric stands twice"
    names = [score_name(rubric.id, metric) for metric in rubric.metrics]
    assert len(set(names)) == len(names), f"{rubric.id}: two scores share a name"
    for metric in rubric.metrics:
        check_metric(metric, cases)
    for case in cases:
        verdict = score(case, rubric, answer=nobody, created_at=_AT)
        assert verdict.rubric_version == rubric.version
        assert verdict.composite is None or -1e-9 <= verdict.composite <= rubric.scale + 1e-9


def _compiled(given: Mapping[str, object]) -> list[Rubric]:
    """The rubrics that a map declares; ``AssertionError`` lists each mistake with its path."""
    assert isinstance(given, Mapping), f"a {type(given).__name__} is neither a Rubric nor a map that declares one"
    one = "metrics" in given or "extends" in given
    sections = {"rubric": given} if one else given.get("rubrics", given)
    here = Path.cwd()
    found = read_declarations(
        json.loads(json.dumps({"rubrics": sections})), here, {}, lambda _: (None, None),
        lambda: sources(here, LangfusePrompts({})), files=ReadFiles(),
    )  # fmt: skip
    assert not found.problems, "; ".join(
        f"{each.path.removeprefix('rubrics.')}: {each.message}" for each in found.problems
    )
    names = sections if isinstance(sections, Mapping) else ()
    own = [rubric for name, rubric in found.rubrics.items() if name in names]  # others are of installed packages
    assert own, "the map declares no rubric: one has metrics, or extends another"
    return own


def check_dialect(dialect: Dialect, spans: Iterable[RawSpan]) -> None:
    """Check that a dialect claims these spans, normalises each, keeps its identity, and leaves others' spans alone."""
    foreign = RawSpan(trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="GET /", start_ns=1, end_ns=2)
    assert not dialect.speaks(foreign), f"{dialect.name} speaks for a span without any of its signs"
    for raw in spans:
        assert dialect.speaks(raw), f"{dialect.name} does not speak for the span {raw.name!r}"
        normalised = dialect.normalise(raw)
        assert isinstance(normalised, Span), f"{dialect.name} normalises {raw.name!r} to a {type(normalised).__name__}"
        assert (normalised.trace_id, normalised.span_id, normalised.parent_id) == (
            raw.trace_id,
            raw.span_id,
            raw.parent_id,
        )
        assert normalised == dialect.normalise(raw), (
            f"{dialect.name} normalises {raw.name!r} differently the second time"
        )


def verdicts() -> list[dict[str, object]]:
    """Verdicts as a sink receives them: on ``CASES``, by a built-in rubric."""
    made = [score(case, RUBRICS["run_health"], answer=nobody, created_at=_AT).to_json() for case in CASES.values()]
    return [json.loads(json.dumps(verdict)) for verdict in made]


NOTICES: Final[tuple[Mapping[str, object], ...]] = tuple(
    notice_record(Notice(id=f"test-{kind}", kind=kind, at_ns=1_767_225_600_000_000_000), Wording())
    for kind in (NoticeKind.TEST, NoticeKind.DIGEST)
)
"""Notices as a notifier receives them."""


def check_sink(sink: object) -> None:
    """Check that a sink takes verdicts one by one, together, and again, because a crash may send them twice."""
    deliver = getattr(sink, "deliver", None)
    assert callable(deliver), f"{type(sink).__name__} has no method deliver"
    every = verdicts()
    for batch in ([], *([each] for each in every), every, every):
        returned = _taken(deliver, list(batch))
        assert returned is None or isinstance(returned, Mapping), f"deliver returns {returned!r}, not None or a map"
        positions = list(returned or ())
        assert all(each in range(len(batch)) for each in positions), f"deliver refuses positions {positions}"


def check_notifier(notifier: object) -> None:
    """Check that a notifier takes notices, and the same one twice."""
    send = getattr(notifier, "send", None)
    assert callable(send), f"{type(notifier).__name__} has no method send"
    for notice in (*NOTICES, *NOTICES):
        returned = _taken(send, dict(notice))
        assert returned is None, f"send returns {returned!r}; one that fails raises"


def _taken(call: Callable[[object], object], given: object) -> object:
    """The result of a call. The two errors for a refusal are allowed."""
    try:
        returned = call(given)
        return asyncio.run(returned) if inspect.iscoroutine(returned) else returned
    except (DestinationUnreachableError, RefusedError):
        return None
