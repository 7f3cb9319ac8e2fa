"""Lines: common features of good runs, each as a line of a scenario and a test of a run.

A line is proposed from runs that all keep to it. Its worth is decided elsewhere, on other runs.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, permutations
from typing import Final

from sidejudge.scoring.metrics.result_use import stands_in
from sidejudge.scoring.scenario.json_schema import json_equal
from sidejudge.scoring.scenario.scenario import PAIRED, Relations
from sidejudge.scoring.trace.span import Json, JsonRecord

from .observed_run import ObservedRun

MIN_SUPPORT: Final = 5
"""Fewest runs that a proposed line applies to, which means that they called its tool."""
ENOUGH_RUNS: Final = 10
"""With fewer runs, only what all of them did is proposed, because every habit looks like a rule."""
_ENOUGH: Final = 15
"""Fewest runs or values for a limit of one call, or the shape of identifiers, to be more than chance."""
MOST_PAIRED: Final = 40
"""Most tools, by frequency, among which relations are searched."""
_SLACK: Final = 1.5
"""The factor by which a limit exceeds the largest observed value."""
_MOST_VALUES: Final = 8
_TYPES: Final = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a scenario.

    ``kind`` is the scenario's key, ``value`` the value under it (``before``, ``["a", "b"]``). ``kind`` and ``about``
    identify equal lines of two samples, whatever their limit. ``support`` counts the runs that it applies to. ``keeps``
    returns whether a run keeps to it.
    """

    kind: str
    about: tuple[str, ...]
    value: Json
    support: int
    keeps: Callable[[ObservedRun], bool] = field(compare=False, repr=False)


def propose(runs: Sequence[ObservedRun], elsewhere: frozenset[str] = frozenset()) -> Iterator[Line]:
    """Every line that all of the runs keep to.

    Args:
        runs: Good runs of one group.
        elsewhere: Tools that others call (bad runs, other groups); those that no good run calls are forbidden.
    """
    if not runs:
        return
    yield from _always(runs)
    whole = [run for run in runs if not run.names_only]
    if len(runs) < ENOUGH_RUNS:
        if len(whole) == len(runs):
            yield from _arguments(whole, always=frozenset.intersection(*(run.tools for run in runs)))
        return
    yield from _vocabulary(runs, elsewhere)
    yield from _relations(runs)
    yield from _limits(runs)
    yield from _arguments(whole)
    yield from _origins(whole)


def _always(runs: Sequence[ObservedRun]) -> Iterator[Line]:
    for tool in sorted(frozenset.intersection(*(run.tools for run in runs))):
        yield Line("tools_should_include", (tool,), tool, len(runs), partial(_calls, tool))
    agents = [frozenset(run.agents) for run in runs if run.agents is not None]
    for agent in sorted(frozenset.intersection(*agents)) if len(agents) == len(runs) else ():
        yield Line("agents_should_include", (agent,), agent, len(runs), partial(_ran, agent))


def _calls(tool: str, run: ObservedRun) -> bool:
    return tool in run.tools


def _calls_not(tool: str, run: ObservedRun) -> bool:
    return tool not in run.tools


def _ran(agent: str, run: ObservedRun) -> bool:
    return agent in (run.agents or ())


def _calls_among(known: frozenset[str], run: ObservedRun) -> bool:
    return run.tools <= known


def _vocabulary(runs: Sequence[ObservedRun], elsewhere: frozenset[str]) -> Iterator[Line]:
    known = frozenset().union(*(run.tools for run in runs))
    if known:
        names: list[Json] = [name for name in sorted(known)]  # noqa: C416  # a list of names is no list of Json values
        yield Line("tools_may_include", (), names, len(runs), partial(_calls_among, known))
    for tool in sorted(elsewhere - known):
        yield Line("tools_should_exclude", (tool,), tool, len(runs), partial(_calls_not, tool))


def _relations(runs: Sequence[ObservedRun]) -> Iterator[Line]:
    seen = Counter(tool for run in runs for tool in run.tools)
    tools = [tool for tool, count in seen.most_common(MOST_PAIRED) if count >= MIN_SUPPORT]
    for a, b in permutations(sorted(tools), 2):
        together = sum(a in run.tools and b in run.tools for run in runs)
        supports = {"before": seen[b], "after": seen[a], "not_after": together}
        for key, support in supports.items():
            if support >= MIN_SUPPORT:
                yield from _held(runs, key, a, b, support)
    for a, b in combinations(sorted(tools), 2):
        # Two that never meet are evidence only where chance would have brought them together.
        if seen[a] * seen[b] / len(runs) >= MIN_SUPPORT:
            yield from _held(runs, "not_both", a, b, seen[a] + seen[b])


def _held(runs: Sequence[ObservedRun], key: str, a: str, b: str, support: int) -> Iterator[Line]:
    relation = Relations(**{name: ((a, b),) if name == key else () for name in PAIRED})

    def keeps(run: ObservedRun) -> bool:
        return next(relation.broken(run.called), None) is None

    if all(map(keeps, runs)):
        yield Line(key, (a, b), [a, b], support, keeps)


def _limits(runs: Sequence[ObservedRun]) -> Iterator[Line]:
    counts = [Counter(run.called) for run in runs]
    made: dict[str, list[int]] = defaultdict(list)
    for count in counts:
        for tool, number in count.items():
            made[tool].append(number)
    for tool, numbers in sorted(made.items()):
        if (support := len(numbers)) >= MIN_SUPPORT:
            most = _with_slack(max(numbers) if support >= _ENOUGH else max(2, *numbers))
            yield Line("max_calls", (tool,), most, support, partial(_calls_at_most, tool, most))
    most = _with_slack(max(len(run.calls) for run in runs))
    yield Line("max_calls", ("*",), most, len(runs), partial(_calls_at_most, None, most))
    tokens = [run.tokens for run in runs if run.tokens is not None]
    if len(tokens) == len(runs) and max(tokens) > 0:
        limit = math.ceil(max(tokens) * _SLACK)
        yield Line("max_tokens", (), limit, len(runs), partial(_tokens_at_most, limit))


def _tokens_at_most(most: int, run: ObservedRun) -> bool:
    return (run.tokens or 0) <= most


def _calls_at_most(tool: str | None, most: int, run: ObservedRun) -> bool:
    return (len(run.calls) if tool is None else run.called.count(tool)) <= most


def _with_slack(most: int) -> int:
    return most if most <= 1 else math.ceil(most * _SLACK)


def _arguments(runs: Sequence[ObservedRun], always: frozenset[str] | None = None) -> Iterator[Line]:
    """A JSON Schema for each tool: its constant arguments, their types, and values where these are few.

    Covers only the tools in ``always`` where that is given.
    """
    support = Counter(tool for run in runs for tool in run.tools)
    for tool, given in _by_tool(runs).items():
        if len(given) < MIN_SUPPORT or (always is not None and tool not in always):
            continue
        values: dict[str, list[Json]] = defaultdict(list)
        for arguments in given:
            for name, value in arguments.items():
                values[name].append(value)
        schema: dict[str, Json] = {
            "type": "object",
            "properties": {name: _schema(of) for name, of in sorted(values.items())},
            "required": [*(name for name, of in sorted(values.items()) if len(of) == len(given))],
            "additionalProperties": False,
        }
        yield Line("arguments_schema", (tool,), schema, support[tool], partial(_arguments_fit, tool, schema))


def _by_tool(runs: Sequence[ObservedRun]) -> dict[str, list[Mapping[str, Json]]]:
    found: dict[str, list[Mapping[str, Json]]] = defaultdict(list)
    for run in runs:
        for call in run.calls:
            found[call.tool].append(call.arguments)
    return dict(sorted(found.items()))


def _schema(values: Sequence[Json]) -> dict[str, Json]:
    types = sorted({_type(value) for value in values})
    found: dict[str, Json] = {} if len(types) > 2 else {"type": types[0] if len(types) == 1 else [*types]}
    if len(values) >= MIN_SUPPORT and all(json_equal(value, values[0]) for value in values):
        return {**found, "enum": [values[0]]}
    if types == ["string"]:
        distinct = {value for value in values if isinstance(value, str)}
        if len(distinct) <= _MOST_VALUES and len(values) >= 4 * len(distinct) and len(values) >= 2 * MIN_SUPPORT:
            listed: list[Json] = [value for value in sorted(distinct)]  # noqa: C416  # likewise
            found["enum"] = listed
        elif len(distinct) >= _ENOUGH and len(shapes := {_shape(value) for value in distinct}) == 1:
            (shape,) = shapes
            if "9" in shape:
                found["pattern"] = _pattern(shape)
    return found


def _type(value: Json) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")


def _shape(text: str) -> str:
    """An identifier's shape: letters and digits by their kind, everything else as it is.

    >>> _shape("ORD-4711")
    'AAA-9999'
    """
    shape = re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", re.sub(r"[0-9]", "9", text)))
    return shape if len(text) <= 40 and " " not in text else ""


def _pattern(shape: str) -> str:
    kinds = {"9": "[0-9]", "A": "[A-Z]", "a": "[a-z]"}
    return "^" + "".join(kinds.get(sign, re.escape(sign)) for sign in shape) + "$"


def _arguments_fit(tool: str, schema: JsonRecord, run: ObservedRun) -> bool:
    """Validate as the schema does, for the few keywords that are learned."""
    required, properties = frozenset(schema["required"]), schema["properties"]
    return run.names_only or all(
        required <= call.arguments.keys()
        and all(name in properties and _value_fits(value, properties[name]) for name, value in call.arguments.items())
        for call in run.calls
        if call.tool == tool
    )


def _value_fits(value: Json, schema: JsonRecord) -> bool:
    types = schema.get("type")
    kind = _type(value)
    if types is not None and kind not in types and not (kind == "integer" and "number" in types):
        return False
    if "enum" in schema:
        return any(json_equal(value, one) for one in schema["enum"])
    return "pattern" not in schema or (isinstance(value, str) and re.fullmatch(schema["pattern"], value) is not None)


def _origins(runs: Sequence[ObservedRun]) -> Iterator[Line]:
    """Arguments that look like identifiers and always occurred in the input or in an earlier result."""
    given: dict[tuple[str, str], list[Json]] = defaultdict(list)
    support: Counter[tuple[str, str]] = Counter()
    invented: set[tuple[str, str]] = set()
    for run in runs:  # once, however many tools and arguments there are
        support.update({(call.tool, name) for call in run.calls for name in call.arguments})
        before = [run.requested]
        for call in run.calls:
            for name, value in call.arguments.items():
                given[call.tool, name].append(value)
                if (call.tool, name) not in invented and not stands_in(value, before):
                    invented.add((call.tool, name))
            before.append(call.result)
    for tool, argument in sorted(given.keys() - invented):
        if support[tool, argument] >= MIN_SUPPORT and _identify(given[tool, argument]):
            keeps = partial(_values_stand_before, tool, argument)
            yield Line("values_from", (tool, argument), ["input", "results"], support[tool, argument], keeps)


def _values_stand_before(tool: str, argument: str, run: ObservedRun) -> bool:
    return run.names_only or all(stands_in(value, texts) for value, texts in _values(run, tool, argument))


def _values(run: ObservedRun, tool: str, argument: str) -> Iterator[tuple[Json, list[str]]]:
    before: list[str] = [run.requested]
    for call in run.calls:
        if call.tool == tool and argument in call.arguments:
            yield call.arguments[argument], list(before)
        before.append(call.result)


def _identify(given: Sequence[Json]) -> bool:
    """Whether most of the values hold a digit and no space: an id, a date, an amount, and not a phrase."""
    values = [value for value in given if isinstance(value, str | int | list)]
    texts = [str(one) for value in values for one in (value if isinstance(value, list) else [value])]
    like = sum(any(sign.isdigit() for sign in text) and " " not in text and len(text) >= 3 for text in texts)
    return bool(texts) and like >= 0.8 * len(texts)
