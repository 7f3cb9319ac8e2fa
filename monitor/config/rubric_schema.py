"""The shape of a declared metric for editors: names of keys and checks; the rest is left to ``sidejudge check``."""

from __future__ import annotations

from typing import Any, Final

MAX_METRICS: Final = 2000
"""Metrics of one rubric."""
_CHECKS: Final = (
    "equals", "contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all", "starts-with",
    "ends-with", "regex", "word-count", "length", "is-json", "contains-json", "is-xml", "is-sql", "levenshtein",
    "rouge-n", "f-score", "bleu", "chrf", "similar", "latency", "cost", "tokens", "max-steps", "finish-reason",
    "tool-called", "tool-call-f1", "tool-sequence", "tool-args", "max-tool-errors", "pii", "language", "readability",
    "refusal",
)  # fmt: skip
CHECK_NAMES: Final = tuple(f"{negation}{name}" for name in _CHECKS for negation in ("", "not-"))
"""Names of all checks; a test holds them against the registry, which takes longer to import."""
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
METRIC_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z][a-z0-9_-]*$", "description": "its name, which never changes"},
        "title": {"type": "string", "description": "what people read above it"},
        "meaning": {"type": "string", "description": "what its value means, in a sentence"},
        "short": {"type": "string", "description": "stands for the id in names of scores that would be too long"},
        "check": {
            "description": "one check with its argument",
            "anyOf": [
                {"enum": list(CHECK_NAMES)},
                {"type": "object", "maxProperties": 1, "properties": {name: {} for name in CHECK_NAMES}},
            ],
        },
        "on": {"type": "string", "description": "what a check looks at (default: output)"},
        "cel": {"type": "string", "description": "a condition, or a number, in CEL"},
        "ask": {"type": ["string", "object"], "description": "a question for the judge"},
        "answer": {
            "description": "boolean, number, findings, {scale: [LOW, HIGH]} or {one_of: [NAME, …]}; a judge "
            "answers `cannot tell` where the data does not decide it, and the metric is unavailable"
        },
        "passes": {"description": "the answer, or the categories, that pass"},
        "anchors": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "what values of a scale, or categories, mean: {1: insulting, 5: very friendly}; without "
            "any the ends are the worst and the best, by `good` and `acceptable`",
        },
        "steps": {**_TEXTS, "description": "how the judge is to go about the question"},
        "examples": {
            "type": "array",
            "items": {"type": "object"},
            "description": "maps with what was given and the right `answer`",
        },
        "rate": {
            "type": "number",
            "description": "share of the judged traces that the question is asked of, in (0, 1]",
        },
        "python": {"type": "string", "description": "module:function, or the name of an installed one"},
        "with": {"type": "object", "description": "further arguments of the function"},
        "timeout": {"type": "number", "description": "seconds that the function may take (1)"},
        "name": {"type": "string", "description": "in place of id and reported: both by this name"},
        "reported": {"type": "string", "description": "the name under which others report their evaluation"},
        "by": {**_TEXTS, "description": "whose reported scores count: globs on NAME (telemetry), NAME (case)"},
        "use": {"type": "string", "description": "RUBRIC.METRIC: a metric of another rubric"},
        "weight": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "share of the composite; without it: reported",
        },
        "prerequisite": {
            "type": "boolean",
            "description": "where it is not 1, the others do not apply and the composite is invalid",
        },
        "blocker": {"type": ["string", "object"], "description": "disqualify, invalidate, or {effect, below, above}"},
        "good": {"type": "number", "description": "from which value on it is good (below acceptable: lower is better)"},
        "acceptable": {"type": "number", "description": "from which value on it is acceptable"},
        "bounds": {
            "type": "array",
            "items": {"type": "number"},
            "description": "[LOW, HIGH] of a number, mapped to [0, 1]; the judge is held to those of `answer: number`",
        },
    },
}
"""The schema of one metric."""
