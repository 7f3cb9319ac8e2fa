"""Mutations: small ways in which a rule can be wrong. A test that passes in spite of one tests nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from tests.dashboards.rules.scenario import seconds

_FLIPPED = {"<": ">", ">": "<", ">=": "<", "==": "!="}
_SIGNS = {"+": "-", "-": "+", "*": "/", "/": "*"}
_SWAPPED = {"sum": "max", "max": "min", "min": "max"}
_VALUES = {
    'level="warning"': 'level="critical"',
    'level="critical"': 'level="warning"',
    'stage="firing"': 'stage="pending"',
    'state="open"': 'state="closed"',
    'reason="error"': 'reason="unavailable"',
    'reason=~"shed|undecodable|error"': 'reason=~"scored"',
    'metric="pass"': 'metric="tone"',
    'container="sidejudge"': 'container="other"',
}

Rule = Mapping[str, Any]
ALIKE = {
    ("service_environment_rubric:sidejudge_status:code", "sum"): "without its level one series is left",
    **dict.fromkeys(
        (("service_environment_rubric:sidejudge_status:code", what) for what in ("max at 5", "max at 117", "* at 3")),
        "all that is left of a status is 1",
    ),
    ("SidejudgeMonitorSilent", "sum at 124"): "what is asked of the verdicts is whether there is any",
    ("SidejudgePassRateChange", "min"): "only the time in the text differs",
    ("SidejudgeScenarioDrift", "min"): "only the time in the text differs",
    ("SidejudgeVersionWorse", "min"): "only the time in the text differs",
    ("SidejudgeSliceWorse", "min"): "only the time in the text differs",
}
"""Mutants that mean the same as the rule, and why: the rule's name and how what was done begins."""


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Every mutant of a rule, with what was done to it."""
    name = name_of(rule)
    for what, expr in dict(_expressions(rule["expr"])).items():
        if any(name == alike and what.startswith(done) for alike, done in ALIKE):
            continue
        yield what, {**rule, "expr": expr}
    for field in ("for", "keep_firing_for"):
        if field in rule:
            yield f"{field} removed", {key: value for key, value in rule.items() if key != field}
            yield f"{field} doubled", {**rule, field: _scaled(rule[field])}
    severity = rule.get("labels", {}).get("severity")
    if severity:
        yield "severity", {**rule, "labels": {**rule["labels"], "severity": "other"}}


def _expressions(expr: str) -> Iterator[tuple[str, str]]:
    # Names in quotes and windows in brackets are not searched for numbers and operators.
    masked = re.sub(r'"[^"]*"|\[[^\]]*\]', lambda found: "#" * len(found[0]), expr)
    for text, edits in ((masked, _EDITS), (expr, _QUOTED)):
        for pattern, what, by in edits:
            for found in re.finditer(pattern, text):
                changed = expr[: found.start()] + by(found) + expr[found.end() :]
                yield f"{found[0] if what is None else what} at {found.start()}", changed


_NUMBER = r"(?<![\w.:])(?=[\d.]*[1-9])\d+(?:\.\d+)?(?:e-\d+)?(?![\w:])"
_Edit = tuple[str, str | None, Callable[[re.Match[str]], str]]
_EDITS: tuple[_Edit, ...] = (
    (_NUMBER, "a number larger", lambda found: f"{float(found[0]) * 1.25:g}"),
    (_NUMBER, "a number smaller", lambda found: f"{float(found[0]) * 0.8:g}"),
    (r"(?<=\s)(<|>=|>|==)(?=\s)", None, lambda found: _FLIPPED[found[0]]),
    (r"\b(and|unless|or)\b", None, lambda found: {"and": "or", "unless": "and", "or": "and"}[found[0]]),
    (r"\b(sum|max|min)\b(?= (without|by))", None, lambda found: _SWAPPED[found[0]]),
    (r"(?<=without \()instance, ", "processes kept apart", lambda _: ""),
    (r", (?!node|job)(\w+)(?=\) \()", "a label kept apart", lambda _: ""),
    (r"(?<= )([+*/-])(?= |\n)|(?<=\n  )([+-])(?=\n)", None, lambda found: _SIGNS[found[0]]),
)
_QUOTED: tuple[_Edit, ...] = (
    (r"\[(\w+)\]", "a window doubled", lambda found: f"[{_scaled(found[1])}]"),
    ("|".join(map(re.escape, _VALUES)), None, lambda found: _VALUES[found[0]]),
    (r'\{alert="(\w+)"\}', "another limit", lambda _: '{alert="other"}'),
)


def _scaled(duration: str) -> str:
    return f"{seconds(duration) * 2}s"


def apart(expr: str, names: AbstractSet[str], number: int) -> str:
    """An expression that reads these rules' copies of this number instead of the rules."""
    return re.sub(r"\w+(?::\w+)*", lambda found: f"{found[0]}_m{number}" if found[0] in names else found[0], expr)


def beside(needed: Sequence[Rule], rule: Rule, tried: Sequence[Rule]) -> tuple[list[Rule], AbstractSet[str]]:
    """Rules with mutants of one of them beside it, so that all are played at once and the others only once.

    Each mutant has a number, and so have the copies of the rules that read it. Of alerts of one name that differ by
    labels, such as a window, the others have none: they do not read it, and a check names its labels.

    Returns:
        The rules, in an order in which they can be evaluated, and the names of those that have copies.
    """
    affected = {name_of(rule)}
    for each in needed:  # what is read stands before what reads it
        if affected & set(re.findall(r"\w+(?::\w+)*", each["expr"])):
            affected.add(name_of(each))
    rules: list[Rule] = []
    for each in needed:
        rules.append(each)
        if name_of(each) in affected and (each is rule or each.get("alert") != name_of(rule)):
            rules += [_copy(mutant if each is rule else each, affected, n) for n, mutant in enumerate(tried)]
    return rules, affected


def _copy(rule: Rule, affected: AbstractSet[str], number: int) -> Rule:
    kind = "record" if "record" in rule else "alert"
    return {**rule, kind: f"{rule[kind]}_m{number}", "expr": apart(rule["expr"], affected, number)}


def name_of(rule: Rule) -> str:
    """The series that it records, or the alert."""
    return str(rule.get("record") or rule["alert"])
