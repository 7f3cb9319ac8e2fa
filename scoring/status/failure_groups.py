"""Failure groups: failing verdicts come in, groups of similar failures with counts go out.

A failure is a failing metric of a verdict; a verdict without one failed by its composite. Failures of one metric are
alike when they have the same failure code; without a code, when their reasons have the same template and names. Reasons
that a judge or a person wrote are alike when they differ only in figures and quotations, or when a caller declares them
alike.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from sidejudge.scoring.evaluators.embedding import Vector, cosine
from sidejudge.scoring.result.reason import GAP, Reason, Rights, outline
from sidejudge.scoring.trace.jsontext import mapping, objects
from sidejudge.scoring.verdict.documents import FAILING

COMPOSITE: Final = "composite"
"""The metric of a verdict that failed although none of its metrics did."""
EXAMPLES: Final = 3
MOST_TEXTS: Final = 100
"""Most reasons of one metric that are compared by meaning: five thousand comparisons."""
_LONGEST: Final = 200
_ID: Final = 8
_QUOTED: Final = re.compile(r"\"[^\"]{1,500}\"|“[^”]{1,500}”|«[^»]{1,500}»|`[^`]{1,500}`|(?<!\w)'[^']{1,500}'(?!\w)")
_FIGURE: Final = re.compile(r"[-+]?\b\d[\d.,:%/]*|\b[0-9a-f]{8,}\b")

Subject: TypeAlias = tuple[str, str, str]
"""Rubric, metric and the key that groups similar failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Similar failures: ``count`` in the period, ``before`` in the preceding one, None where that is not kept any more.

    The periods are of the same length. ``group`` is the group's id, 8 hex digits. ``code`` is the failure code, None
    where reasons were compared. ``words`` is the latest reason; both may quote. ``outline`` is that reason without
    contents. ``examples`` are the latest traces.
    """

    group: str
    rubric: str
    metric: str
    code: str | None
    words: str
    count: int
    before: int | None
    examples: tuple[str, ...]
    outline: Reason = Reason()  # noqa: RUF009  # a reason is frozen


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failing metric. ``alike`` is the key that similar failures share."""

    metric: str
    code: str | None
    words: str
    outline: Reason

    @property
    def alike(self) -> str:
        if self.code is not None:
            return ""
        return self.outline.alike()[:_LONGEST] if self.outline.has_own_words else normalised(self.words)


@dataclass(slots=True)
class _Counting:
    words: str
    outline: Reason
    count: int = 0
    before: int = 0
    examples: list[str] = field(default_factory=list)


def failure_groups(
    verdicts: Iterable[Mapping[str, object]], since_ns: int, alike: Mapping[Subject, str] | None = None
) -> tuple[FailureGroup, ...]:
    """The groups of failing verdicts, the largest first.

    Args:
        verdicts: failing ones in their JSON form with ``closed_ns``, newest first.
        since_ns: the beginning of the period, ns since the epoch; older verdicts count as before it.
        alike: the normalised reason that represents another one (``alike``).
    """
    found: dict[tuple[str, str, str | None, str], _Counting] = {}
    for verdict in verdicts:
        rubric, closed_ns = str(verdict.get("rubric") or ""), verdict.get("closed_ns")
        trace = str(verdict.get("trace_id") or verdict.get("case_id") or "")
        for failure in dict.fromkeys(_failures(verdict)):
            text = (alike or {}).get((rubric, failure.metric, failure.alike), failure.alike)
            key = (rubric, failure.metric, failure.code, text)
            one = found.setdefault(key, _Counting(failure.words, failure.outline))
            if isinstance(closed_ns, int) and closed_ns < since_ns:
                one.before += 1
                continue
            one.count += 1
            if trace and trace not in one.examples and len(one.examples) < EXAMPLES:
                one.examples.append(trace)
    groups = (
        FailureGroup(
            group=hashlib.sha256(json.dumps(key).encode()).hexdigest()[:_ID],
            rubric=key[0], metric=key[1], code=key[2], words=one.words, count=one.count, before=one.before,
            examples=tuple(one.examples), outline=one.outline,
        )
        for key, one in found.items()
    )  # fmt: skip
    return tuple(sorted(groups, key=lambda each: (-each.count, -(each.before or 0), each.group)))


def without_contents(group: FailureGroup, rights: Rights = Rights.NAMES) -> FailureGroup:
    """The group for readers without rights to contents; its failure code is left out, for a judge wrote it."""
    return replace(group, code=None if group.code is None else GAP, words=group.outline.shown(rights))


def reasons(verdicts: Iterable[Mapping[str, object]]) -> dict[tuple[str, str], list[str]]:
    """By rubric and metric, what judges and people wrote on failures without a code, the most frequent first."""
    counted: dict[tuple[str, str], Counter[str]] = {}
    for verdict in verdicts:
        for failure in _failures(verdict):
            if failure.code is None and not failure.outline.has_own_words and (text := failure.alike):
                counted.setdefault((str(verdict.get("rubric") or ""), failure.metric), Counter())[text] += 1
    return {key: [text for text, _ in counts.most_common(MOST_TEXTS)] for key, counts in counted.items()}


def alike(texts: Sequence[str], vectors: Mapping[str, Vector], least: float) -> dict[str, str]:
    """For each text its representative: the nearest earlier text with a cosine of at least ``least``, else itself.

    >>> alike(["a", "b", "c"], {"a": [1.0, 0.0], "b": [0.9, 0.44], "c": [0.0, 1.0]}, 0.8)
    {'a': 'a', 'b': 'a', 'c': 'c'}
    """
    leaders: list[str] = []
    found: dict[str, str] = {}
    for text in texts:
        if text not in vectors:
            continue
        likeness, near = max(
            ((cosine(vectors[leader], vectors[text]), leader) for leader in leaders), default=(-1.0, text)
        )
        if likeness >= least:
            found[text] = near
        else:
            leaders.append(text)
            found[text] = text
    return found


def normalised(reason: str) -> str:
    """A reason without parts that differ between cases: figures, quotations, capitals.

    >>> normalised('Held to be "49 dollars", and 3 of 4 facts  are missing')
    'held to be …, and # of # facts are missing'
    """
    text = _FIGURE.sub("#", _QUOTED.sub("…", reason[: 4 * _LONGEST]))
    return " ".join(text.casefold().split())[:_LONGEST]


def _failures(verdict: Mapping[str, object]) -> list[_Failure]:
    """The failing scores of a verdict; without any, the verdict itself."""
    failing = [each for each in objects(verdict.get("scores")) if each.get("rating") in FAILING]
    if not failing:
        return [_failure(COMPOSITE, None, verdict)]
    return [_failure(str(each.get("metric")), _code(each), each) for each in failing]


def _failure(metric: str, code: str | None, fields: Mapping[str, object]) -> _Failure:
    return _Failure(metric, code, str(fields.get("reason") or ""), outline(fields))


def _code(score: Mapping[str, object]) -> str | None:
    code = mapping(score.get("details")).get("failure_code")
    return code if isinstance(code, str) and code else None
