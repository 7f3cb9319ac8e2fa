"""Mutations: small ways in which a rule can be wrong. A test that passes in spite of one tests nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_FLIPPED = {"<": ">", ">": "<", ">=": "<", "==": "!="}
_SWAPPED = {"sum": "max", "max": "min", "min": "max"}
_VALUES = {
    'level="warning"': 'level="critical"',
    'level="critical"': 'level="warning"',
    'stage="firing"': 'stage="pending"',
    'state="open"': 'state="closed"',
    'reason="error"': 'reason="unavailable"',
    'reason=~"shed|undecodable|error"': 'reason=~"scored"',
    'container="sidejudge"': 'container="other"',
}

Rule = Mapping[str, Any]
ALIKE = {
    ("service_environment_rubric:sidejudge_status:code", "sum"): "without its level one series is left",
    ("SidejudgeMonitorSilent", "sum at 124"): "what is asked of the verdicts is whether there is any",
    ("SidejudgePassRateChange", "min"): "only the time in the text differs",
}
"""Mutants that mean the same as the rule, and why: the rule's name and how what was done begins."""


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Every mutant of a rule, with what was done to it."""
    name = rule.get("record", rule.get("alert"))
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
    masked = re.sub(r'"[^"]*"|\[[^\]]*\]', lambda found: "#" * len(found[0]), expr)

    def replaced(found: re.Match[str], by: str, what: str) -> tuple[str, str]:
        where = f"{what} at {found.start()}"
        return where, expr[: found.start()] + by + expr[found.end() :]

    for found in re.finditer(r"(?<![\w.:])\d+(?:\.\d+)?(?:e-\d+)?(?![\w:])", masked):
        value = float(found[0])
        if value:
            yield replaced(found, f"{value * 1.25:g}", f"{found[0]} larger")
            yield replaced(found, f"{value * 0.8:g}", f"{found[0]} smaller")
    for found in re.finditer(r"(?<=\s)(<|>=|>|==)(?=\s)", masked):
        yield replaced(found, _FLIPPED[found[0]], f"{found[0]} turned round")
    for found in re.finditer(r"\b(and|unless|or)\b", masked):
        yield replaced(found, {"and": "or", "unless": "and", "or": "and"}[found[0]], found[0])
    for found in re.finditer(r"\b(sum|max|min)\b(?= (without|by))", masked):
        yield replaced(found, _SWAPPED[found[0]], found[0])
    for found in re.finditer(r"(?<=without \()instance, ", masked):
        yield replaced(found, "", "processes kept apart")
    for found in re.finditer(r", (\w+)(?=\) \()(?<=\w)", masked):
        if found[1] not in {"node", "job"}:
            yield replaced(found, "", f"{found[1]} kept apart")
    for found in re.finditer(r"\[(\w+)\]", expr):
        yield replaced(found, f"[{_scaled(found[1])}]", f"window {found[1]}")
    for before, after in _VALUES.items():
        for found in re.finditer(re.escape(before), expr):
            yield replaced(found, after, before)
    for found in re.finditer(r'\{alert="(\w+)"\}', expr):
        yield replaced(found, '{alert="other"}', "limit")
    for found in re.finditer(r"(?<= )([+*/-])(?= |\n)|(?<=\n  )([+-])(?=\n)", masked):
        by = {"+": "-", "-": "+", "*": "/", "/": "*"}[found[0]]
        yield replaced(found, by, f"{found[0]} for {by}")


def _scaled(duration: str) -> str:
    seconds = sum(
        int(n) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[u] for n, u in re.findall(r"(\d+)([dhms])", duration)
    )
    return f"{seconds * 2}s"
