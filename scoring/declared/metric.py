"""A declared metric: one of check, cel, ask, python, reported or use, with weight, bands, blocker and prerequisite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import GeneratorType
from typing import Final, Protocol

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.checks.check import CheckError
from sidejudge.scoring.checks.registry import compile_check
from sidejudge.scoring.metrics.metric import Measure, Metric
from sidejudge.scoring.metrics.reported_score import ReportedMeasure
from sidejudge.scoring.questions.question import Begun, Steps
from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Bands, Failed, Method, Result, Scored, must_be_one
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, all_criteria

from .ask import Prompts, no_prompts, read_ask
from .bands import component, new_bands, read_blocker, within
from .cel import CelError, compile_cel
from .labelled import Labelled, no_labels
from .reading import Reading, is_number
from .spans import SpanMatch, over_spans

KINDS: Final = ("check", "cel", "ask", "python", "reported", "use")
_SHARED: Final = (
    "id", "title", "meaning", "short", "weight", "prerequisite", "blocker", "good", "acceptable", "bounds",
)  # fmt: skip
_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "check": ("on",),
    "cel": (),
    "ask": ("answer", "passes", "steps", "examples", "anchors", "rate"),
    "python": ("timeout", "with", "passes"),
    "reported": ("by", "passes"),
    "use": (),
}
_PASS_OR_FAIL: Final = "pass or fail"  # noqa: S105  # a unit


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonMetric:
    """A user's own function of a case: its measure, what its card states, and the methods that may decide it."""

    measure: Measure
    formula: str
    methods: tuple[Method, ...] = (Method.EXACT, Method.JUDGE)


class PythonMetrics(Protocol):
    """A source of functions, which it also runs. ``ValueError`` states why one cannot be used."""

    def __call__(
        self, name: str, *, timeout_s: float, arguments: Mapping[str, Json], passes: Sequence[str]
    ) -> PythonMetric: ...


def no_python(name: str, *, timeout_s: float, arguments: Mapping[str, Json], passes: Sequence[str]) -> PythonMetric:
    """No source of functions: each one is refused."""
    del timeout_s, arguments, passes
    raise ValueError(f"{name}: functions are not run here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All that a declaration may refer to: rubrics that it extends or uses, functions, external prompts, labels."""

    rubrics: Mapping[str, Rubric] = field(default_factory=dict)
    python: PythonMetrics = no_python
    prompts: Prompts = no_prompts
    labelled: Labelled = no_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class _Computation:
    """What the kind of a metric (check, ask …) determines. ``binary``: its value is 1 or 0.

    ``more_is_better`` is False for a number of findings, say.
    ``enforced``: no value lies outside the bounds, so that others cannot be declared.
    """

    measure: Measure
    formula: str
    meaning: str
    source: str
    undefined: str
    methods: tuple[Method, ...] = (Method.EXACT,)
    binary: bool = False
    bounds: tuple[float, float | None] = (0.0, 1.0)
    enforced: bool = False
    more_is_better: bool = True
    taught: bool = False


def read_metric(given: Mapping[str, Json], sources: Sources, match: SpanMatch | None = None) -> Criterion:
    """The criterion that a map declares; its weight is 0 where none is given. ``DeclarationError`` lists all faults."""
    kinds = [kind for kind in KINDS if given.get(kind) is not None]
    kind = kinds[0] if kinds else ""
    reading = Reading(given, (*_SHARED, *KINDS, *_OF_KIND.get(kind, ())))
    name = reading.name("id")
    if len(kinds) != 1:
        reading.complain(f"must have exactly one of {', '.join(KINDS)}")
        reading.check()
    if kind == "use":
        return _used(reading, name, sources, match)
    value = _READERS[kind](reading, name, sources)
    weight, prerequisite = reading.number("weight", 0.0, 1.0) or 0.0, reading.truth("prerequisite")
    bands = None if value is None else _bands(reading, value, over_several=match is not None)
    blocker = read_blocker(reading, bands, binary=value is not None and value.binary)
    short = reading.text("short") or None
    bounds = (0.0, 1.0) if value is None else _bounds(reading, value)
    if value is not None and (kind in ("check", "ask", "reported") or reading.has("bounds")):
        within(reading, bounds)
    if prerequisite and value is not None and not value.binary:
        reading.complain(
            "must be 1 or 0 to be a prerequisite: a check, a condition or a yes-or-no question", "prerequisite"
        )
    if weight and bounds[1] is None:
        reading.complain("needs bounds: [LOW, HIGH], for what is weighed is mapped to [0, 1]", "bounds")
    title, meaning = reading.text("title"), reading.text("meaning")
    reading.check()
    assert value is not None  # noqa: S101  # a kind that gives none has noted why
    higher = bands.higher_is_better if bands is not None else value.more_is_better
    metric = Metric(
        id=name,
        # By its own name, not by its kind: a rubric may well have five checks of one kind.
        title=title or name.replace("_", " ").replace("-", " ").capitalize(),
        meaning=meaning or value.meaning,
        formula=value.formula,
        source=value.source,
        measure=value.measure if match is None else over_spans(value.measure, match),
        bands=bands,
        unit=_PASS_OR_FAIL if value.binary and match is None else "ratio" if bounds == (0.0, 1.0) else "points",
        bounds=bounds,
        methods=value.methods,
        undefined=value.undefined,
        short=short,
        taught=value.taught,
    )
    return Criterion(
        metric=metric,
        weight=weight,
        prerequisite=prerequisite,
        blocker=blocker,
        component=component(bounds, higher=higher),
    )


def _of_check(reading: Reading, _: str, __: Sources) -> _Computation | None:
    on = reading.text("on", "output")
    try:
        compiled = compile_check(reading.given["check"], on)
    except CheckError as error:
        path = () if error.path == "on" else ("check", *filter(None, error.path.split(".")))
        reading.complain(str(error), *(("on",) if error.path == "on" else path))
        return None
    check = compiled.check
    graded = check.graded and not _has_threshold(reading.given["check"])
    return _Computation(
        measure=compiled.measure,
        formula=_in_one_line({"check": reading.given["check"], "on": on}),
        meaning=f"{'1 -' if graded and compiled.negated else ''} {compiled.holds} (looks at: {on})".strip(),
        source=check.source,
        undefined=check.undefined,
        methods=(check.method,),
        binary=not graded,
    )


def _has_threshold(declared: Json) -> bool:
    argument = next(iter(declared.values())) if isinstance(declared, dict) else None
    return isinstance(argument, dict) and any(argument.get(key) is not None for key in ("threshold", "at_most"))


def _of_cel(reading: Reading, _: str, __: Sources) -> _Computation | None:
    source = reading.text("cel")
    if not source:
        return None
    try:
        program = compile_cel(source)
    except (CelError, CheckError) as error:
        reading.complain(str(error), "cel")
        return None
    binary = program.kind == "BOOL" or (program.kind == "DYN" and not reading.has("bounds"))
    return _Computation(
        measure=program.measure,
        formula=_in_one_line({"cel": source}),
        meaning=f"1 where {source}" if binary else source,
        source="this configuration",
        undefined="a name that it uses is not known, or it cannot be decided",
        binary=binary,
        bounds=(0.0, 1.0) if binary else (0.0, None),
    )


def _of_ask(reading: Reading, name: str, sources: Sources) -> _Computation | None:
    requested = read_ask(reading, name, sources.prompts, sources.labelled)
    if requested is None:
        return None
    question = requested.question
    return _Computation(
        measure=requested.measure,
        formula=_in_one_line({
            "ask": question.instructions, "passes": list(requested.passes), "values": dict(requested.values or {}),
            "rate": requested.rate, "prompt": requested.version,
        }),
        meaning=question.instructions.split("\n", 2)[1],
        source=f"Langfuse prompt {requested.version}" if requested.version else "this configuration",
        undefined=f"one of {', '.join(question.parts)} is not known, or no judge is configured",
        methods=(Method.JUDGE,),
        binary=requested.binary,
        bounds=requested.bounds,
        enforced=question.kind in ("scale", "number") and bool(question.choices),
        more_is_better=question.kind != "findings",
        taught=requested.labelled > 0,
    )  # fmt: skip


def _of_python(reading: Reading, _: str, sources: Sources) -> _Computation | None:
    name, timeout = reading.text("python"), reading.number("timeout", 0.001, 60.0)
    arguments, passes = reading.given.get("with"), reading.texts("passes")
    if arguments is not None and not isinstance(arguments, dict):
        reading.complain("must be a map of the function's further arguments", "with")
        return None
    if not name:
        return None
    try:
        found = sources.python(
            name, timeout_s=1.0 if timeout is None else timeout, arguments=arguments or {}, passes=passes
        )
    except ValueError as error:
        reading.complain(str(error), "python")
        return None
    binary = not any(reading.has(key) for key in ("good", "acceptable", "bounds"))
    unbounded = not reading.has("bounds") and (binary or reading.has("weight"))
    return _Computation(
        measure=_at_most_1(found.measure) if unbounded else found.measure,
        formula=_in_one_line({"python": found.formula, "with": arguments or {}, "passes": list(passes)}),
        meaning=f"what {name} returns",
        source=name,
        undefined="the function says so, raises, or takes longer than its timeout",
        methods=found.methods,
        binary=binary,
    )


_ROUNDING: Final = 1e-3


def _at_most_1(measure: Measure) -> Measure:
    """The measure, except that it fails above 1: a score on another scale would always pass as the best."""

    def checked(result: Result) -> Result:
        if not isinstance(result, Scored) or result.value <= 1 + _ROUNDING:
            return result
        why = "the function returned {value}: give the metric bounds, for without them 1 is best"
        return Failed(Reason(why, value=result.value))

    def in_steps(steps: Steps) -> Steps:
        return checked((yield from steps))

    def measured(case: Case) -> Begun:
        begun = measure(case)
        if isinstance(begun, Scored):
            return checked(begun)
        return in_steps(begun) if isinstance(begun, GeneratorType) else begun

    return measured


def _of_reported(reading: Reading, _: str, __: Sources) -> _Computation | None:
    name, by, passes = reading.text("reported"), reading.texts("by"), reading.texts("passes")
    if not name:
        return None
    stated = reading.given.get("bounds")
    ends = stated if isinstance(stated, list) and len(stated) == 2 and all(map(is_number, stated)) else [0.0, 1.0]
    low, high = float(ends[0]), float(ends[1])  # type: ignore[arg-type]  # numbers, by the condition
    return _Computation(
        measure=ReportedMeasure(name=name, by=by, passes=passes, bounds=(low, high)),
        formula=_in_one_line({"reported": name, "by": list(by), "passes": list(passes), "bounds": [low, high]}),
        meaning=f"what {', '.join(by) or 'others'} reported as {name}",
        source="whoever wrote it; anybody who can write telemetry can",
        undefined="nobody reported it, or what was reported is no value within the bounds",
        methods=(Method.REPORTED,),
        bounds=(low, high),
        enforced=True,
    )


_READERS: Final[Mapping[str, Callable[[Reading, str, Sources], _Computation | None]]] = {
    "check": _of_check, "cel": _of_cel, "ask": _of_ask, "python": _of_python,
    "reported": _of_reported,
}  # fmt: skip


def _used(reading: Reading, name: str, sources: Sources, match: SpanMatch | None) -> Criterion:
    """A metric of another rubric, unchanged except for its weight."""
    stated = reading.text("use")
    rubric, _, metric = stated.partition(".")
    found = sources.rubrics.get(rubric)
    if match is not None:
        reading.complain("looks at whole traces; it cannot be used where spans are judged", "use")
    if found is None:
        every = [f"{name}.{each}" for name, rubric in sources.rubrics.items() for each in rubric.metric_ids]
        named = [each for each in every if each.rpartition(".")[2] == stated]
        near = named or get_close_matches(stated, every, n=1)
        meant = f"did you mean {near[0]}?" if near else f"valid here: {', '.join(sources.rubrics)}"
        reading.complain(f"must be RUBRIC.METRIC; there is no rubric {rubric!r}; {meant}", "use")
        reading.check()
        raise AssertionError
    criteria = {each.metric.id: each for each in all_criteria(found)}
    if metric not in criteria:
        near = get_close_matches(metric, criteria, n=1)
        meant = f"did you mean {rubric}.{near[0]}?" if near else f"valid here: {', '.join(criteria)}"
        reading.complain(f"rubric {rubric} has no metric {metric!r}; {meant}", "use")
        reading.check()
    return with_changes(criteria[metric], reading, name)


def with_changes(criterion: Criterion, reading: Reading, name: str) -> Criterion:
    """A criterion with a declaration's changes: weight, bands, blocker, prerequisite, words of its card."""
    metric = criterion.metric
    bands = new_bands(reading, metric.bands)
    weight = reading.number("weight", 0.0, 1.0)
    binary = metric.unit == _PASS_OR_FAIL
    blocker = read_blocker(reading, bands, binary=binary) if "blocker" in reading.given else criterion.blocker
    prerequisite = reading.truth("prerequisite") if "prerequisite" in reading.given else criterion.prerequisite
    if reading.has("bounds"):
        reading.complain("belongs to the metric and cannot be changed", "bounds")
    within(reading, metric.bounds)
    reading.check()
    return replace(
        criterion,
        metric=replace(
            metric,
            id=name,
            title=reading.text("title") or metric.title,
            meaning=reading.text("meaning") or metric.meaning,
            short=reading.text("short") or metric.short,
            bands=bands,
        ),
        weight=criterion.weight if weight is None else weight,
        blocker=blocker,
        prerequisite=prerequisite,
    )


def _bands(reading: Reading, value: _Computation, *, over_several: bool) -> Bands | None:
    """Bands of a value; the mean over several spans is a number, though each of them is 1 or 0."""
    if value.binary and over_several:
        return new_bands(reading, None) or must_be_one()
    if value.binary:
        for key in ("good", "acceptable"):
            if reading.has(key):
                reading.complain("belongs to a number; this metric is 1 or 0", key)
        return must_be_one()
    return new_bands(reading, None, more_is_better=value.more_is_better)


def _bounds(reading: Reading, value: _Computation) -> tuple[float, float | None]:
    given = reading.given.get("bounds")
    if given is None:
        return value.bounds
    ends = given if isinstance(given, list) else []
    if len(ends) != 2 or not all(map(is_number, ends)) or not ends[0] < ends[1]:  # type: ignore[operator]  # numbers, by the condition
        reading.complain("must be [LOW, HIGH], two numbers", "bounds")
        return value.bounds
    if value.binary:
        reading.complain("belongs to a number; this metric is 1 or 0", "bounds")
    if value.enforced and value.bounds != (ends[0], ends[1]):
        low, high = value.bounds
        reading.complain(f"are {low:g} to {high:g} by its answer; leave them out", "bounds")
    return float(ends[0]), float(ends[1])  # type: ignore[arg-type]  # as above


def _in_one_line(stated: Mapping[str, object]) -> str:
    return json.dumps(stated, ensure_ascii=False, sort_keys=True, default=str)
