"""From a declaration to a ``Rubric``: metrics, weights, bands, blockers and pass mark; all faults at once."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final, cast

from sidejudge.scoring.trace.span import Json, SpanKind
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, all_criteria
from sidejudge.scoring.verdict.score import MAX_SCORE_NAME, composite_name, pass_name, score_name, state_name

from .metric import KINDS, Sources, read_metric, with_changes
from .reading import DeclarationError, Fault, Reading
from .spans import SpanMatch

KEYS: Final = (
    "title", "metrics", "extends", "judges", "spans", "pass_mark", "min_coverage", "judge", "metric_judges", "labels",
)  # fmt: skip
"""The keys of a declared rubric. The last three name its evaluators and labels; they are no part of the rubric itself.
"""
JUDGES: Final = ("traces", "sessions", "spans")
MAX_METRICS: Final = 2000
_MAX_NAME: Final = MAX_SCORE_NAME - len("_score")
_SPAN_KINDS: Final = frozenset({SpanKind.LLM, SpanKind.TOOL})


def declared_rubric(name: str, given: Mapping[str, Json], sources: Sources) -> Rubric:
    """The rubric that is declared under a name. ``DeclarationError`` lists all its faults."""
    reading = Reading(given, KEYS)
    if not 0 < len(name) <= _MAX_NAME or not all(each.isascii() and (each.isalnum() or each in "_-") for each in name):
        reading.complain(f"the name must be 1 to {_MAX_NAME} letters, digits, '_' and '-', for scores are called by it")
    elif name != name.lower():
        reading.complain("the name must be in lower case, for scores are called by it")
    base = _base(reading, sources)
    match = _match(reading)
    if match is not None and base is not None:
        reading.complain("cannot be extended where spans are judged", "extends")
    given_mark = reading.number("pass_mark", 0.0, base.scale if base is not None else 1.0)
    coverage, title = reading.number("min_coverage", 0.0, 1.0), reading.text("title")
    criteria, weighed = _criteria(reading, base, sources, match)
    reading.check()
    _names(reading, name, criteria)
    criteria = _with_weights(reading, criteria, weighed, extends=base is not None)
    pass_mark = _pass_mark(reading, criteria, base) if given_mark is None else given_mark
    reading.check()
    made = Rubric(
        id=name,
        title=title or (base.title if base is not None else name.replace("-", " ").replace("_", " ").capitalize()),
        source="this configuration" if base is None else f"this configuration, and {base.source}",
        formula=_formula(criteria, match, base),
        criteria=tuple(criteria),
        pass_mark=pass_mark,
    )
    if base is not None:
        made = replace(
            made, scale=base.scale, min_coverage=base.min_coverage, passes=base.passes, detail=base.detail,
            opt_in=tuple(each for each in base.opt_in if each.metric.id not in made.metric_ids),
        )  # fmt: skip
    return made if coverage is None else replace(made, min_coverage=coverage)


def _base(reading: Reading, sources: Sources) -> Rubric | None:
    if "extends" not in reading.given:
        return None
    name = reading.given["extends"]
    found = sources.rubrics.get(name) if isinstance(name, str) else None
    if found is None:
        reading.complain(f"there is no rubric {name!r}; valid here: {', '.join(sources.rubrics)}", "extends")
    return found


def _match(reading: Reading) -> SpanMatch | None:
    """Which spans to judge; None to judge whole traces or sessions."""
    if reading.one_of("judges", JUDGES, "traces") != "spans":
        if reading.has("spans"):
            reading.complain("belongs to judges: spans", "spans")
        return None
    given = reading.given.get("spans", {})
    if not isinstance(given, dict):
        reading.complain("must be a map with kind, name and take", "spans")
        return None
    inner = Reading(given, ("kind", "name", "take"))
    kind = inner.one_of("kind", ("any", *(each.value for each in SpanKind)), "any")
    kinds = _SPAN_KINDS if kind == "any" else frozenset({SpanKind(kind)})
    lowest = inner.one_of("take", ("mean", "lowest"), "mean") == "lowest"
    match = SpanMatch(kinds=kinds, name=inner.text("name") or None, lowest=lowest)
    reading.take(DeclarationError(inner.faults), "spans")
    return match


def _criteria(
    reading: Reading, base: Rubric | None, sources: Sources, match: SpanMatch | None
) -> tuple[list[Criterion], set[str]]:
    """All criteria in order, and the ids of criteria with a stated weight."""
    made = {each.metric.id: each for each in base.criteria} if base is not None else {}
    offered = {each.metric.id: each for each in base.opt_in} if base is not None else {}
    given = reading.given.get("metrics", [])
    stated: set[str] = set()
    seen: set[str] = set()
    if base is None and not given and reading.has("extends"):
        return [], stated  # what it extends is not there, which is reported
    if not isinstance(given, list) or len(given) > MAX_METRICS or (not given and base is None):
        reading.complain(f"must be a list of 1 to {MAX_METRICS} metrics", "metrics")
        return [], stated
    for at, entry in enumerate(map(_by_name, given)):
        if not isinstance(entry, dict):
            reading.complain("must be a map with id and one of " + ", ".join(KINDS), "metrics", at)
            continue
        name = entry.get("id")
        if isinstance(name, str) and name in seen:
            reading.complain(f"the id {name!r} stands twice", "metrics", at, "id")
            continue
        try:
            known = (made.get(name) or offered.get(name)) if isinstance(name, str) else None
            if known is None and base is not None and not any(entry.get(kind) is not None for kind in KINDS):
                near = get_close_matches(str(name), [*made, *offered], n=1)
                meant = f"did you mean {near[0]}?" if near else f"a new one has one of {', '.join(KINDS)}"
                reading.complain(f"{base.id} has no metric {name!r}; {meant}", "metrics", at, "id")
                continue
            criterion = _changed(known, entry) if known is not None else read_metric(entry, sources, match)
        except DeclarationError as error:
            reading.take(error, "metrics", at)
            continue
        made[criterion.metric.id] = criterion
        seen.add(criterion.metric.id)
        if entry.get("weight") is not None:
            stated.add(criterion.metric.id)
    return list(made.values()), stated


def _by_name(entry: Json) -> Json:
    """A metric declared by ``name`` alone: its id, and the name under which others report it."""
    if not isinstance(entry, dict) or "name" not in entry or entry.keys() & {"id", *KINDS}:
        return entry
    rest = {key: value for key, value in entry.items() if key != "name"}
    name = re.sub(r"[^a-z0-9]+", "_", str(entry["name"]).lower()).lstrip("_0123456789").rstrip("_")
    return {"id": name, "reported": entry["name"], **rest}


def _changed(known: Criterion, entry: Mapping[str, Json]) -> Criterion:
    """A metric of the extended rubric with its changes."""
    keys = ("id", "weight", "good", "acceptable", "blocker", "prerequisite", "title", "meaning", "short", "bounds")
    reading = Reading(entry, keys)
    return with_changes(known, reading, known.metric.id)


def _with_weights(
    reading: Reading, criteria: Sequence[Criterion], stated: set[str], *, extends: bool
) -> list[Criterion]:
    """Weights that sum to 1: equal ones where none is stated; under ``extends`` the others share the rest."""
    total = math.fsum(each.weight for each in criteria if each.metric.id in stated)
    if not stated and not extends:
        sharing = sum(not each.prerequisite for each in criteria)
        return [
            replace(each, weight=1 / (sharing or len(criteria))) if not (sharing and each.prerequisite) else each
            for each in criteria
        ]
    if extends:
        rest = math.fsum(each.weight for each in criteria if each.metric.id not in stated)
        left = 1.0 - total
        if rest > 0 and left >= -1e-9:
            factor = max(0.0, left) / rest
            return [
                each if each.metric.id in stated else replace(each, weight=each.weight * factor) for each in criteria
            ]
    if abs(total - 1.0) > 1e-9:
        parts = " + ".join(f"{each.weight:g}" for each in criteria if each.weight) or "0"
        reading.complain(f"the weights sum to {total:g} ({parts}), not to 1", "metrics")
    return list(criteria)


def _pass_mark(reading: Reading, criteria: Sequence[Criterion], base: Rubric | None) -> float | None:
    """The extended rubric's pass mark; else the composite of a case that is just acceptable on each metric."""
    if base is not None:
        return base.pass_mark
    without = [each.metric.id for each in criteria if each.weight and each.metric.bands is None]
    if without:
        reading.complain(f"is required, for {', '.join(without[:3])} has neither good nor acceptable", "pass_mark")
        return None
    parts = (each.component(each.metric.bands.acceptable) * each.weight for each in criteria if each.metric.bands)
    return round(math.fsum(parts), 9)


def _names(reading: Reading, name: str, criteria: Sequence[Criterion]) -> None:
    """Check that score names are unique and accepted by Langfuse."""
    for at, criterion in enumerate(criteria):
        try:
            score_name(name, criterion.metric)
        except ValueError as error:
            place = _place(reading, criterion.metric.id, at)
            reading.complain(str(error).replace("a short= of", "short: a name of"), "metrics", place)


def _place(reading: Reading, metric: str, default: int) -> int:
    given = cast("list[dict[str, Json]]", reading.given.get("metrics") or [])
    return next((at for at, each in enumerate(given) if each.get("id") == metric), default)


def score_names(rubric: Rubric) -> Iterator[str]:
    """The names of all scores of a rubric."""
    yield from (composite_name(rubric.id), pass_name(rubric.id), state_name(rubric.id))
    yield from (score_name(rubric.id, each.metric) for each in all_criteria(rubric))


def shared_names(rubrics: Mapping[str, Rubric]) -> Iterator[Fault]:
    """Score names that several rubrics use, each with the later rubric."""
    owners: dict[str, str] = {}
    for rubric in rubrics.values():
        for name, count in Counter(score_names(rubric)).items():
            owner = owners.setdefault(name, rubric.id)
            if owner != rubric.id or count > 1:
                yield Fault((rubric.id,), f"its score {name} is also one of {owner}; rename the rubric or the metric")


def _formula(criteria: Sequence[Criterion], match: SpanMatch | None, base: Rubric | None) -> str:
    parts = " + ".join(f"{each.weight:g} {each.metric.id}{_mapped(each)}" for each in criteria if each.weight)
    of = ""
    if match is not None:
        which = ", ".join(sorted(match.kinds)) + (f" named {match.name}" if match.name else "")
        of = f" ({'lowest' if match.lowest else 'mean'} over spans: {which})"
    return f"{parts}{of}" + (f"; extends {base.version}" if base is not None else "")


def _mapped(criterion: Criterion) -> str:
    low, high = criterion.metric.bounds
    bands = criterion.metric.bands
    turned = bands is not None and not bands.higher_is_better
    if (low, high) == (0.0, 1.0) and not turned:
        return ""
    if high is None:
        return f"[{low:g}..]"
    return f"[{high:g}..{low:g}]" if turned else f"[{low:g}..{high:g}]"
