"""Labelled examples: cases that people labelled in, the few that a question shows to its judge out.

A label either serves as an example or measures. The id of its case alone decides which, so that a judge is never
measured by what it was shown, and the choice of examples does not change what is measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.layout import fence
from sidejudge.scoring.judging.parts import part
from sidejudge.scoring.questions.teaching import teaches
from sidejudge.scoring.trace.span import Json

MOST: Final = 6
"""Most examples that a question shows."""
LONGEST: Final = 2_000
"""Most characters of one example; longer cases are skipped, because nothing is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledCase:
    """A case with each person's label of one metric and our judge's value, None where that is unknown."""

    case: Case
    labels: tuple[float | str, ...]
    verdict: float | str | None = None


Labelled: TypeAlias = Callable[[str], Sequence[LabelledCase] | str]
"""Metric id -> its labelled cases, or why there are none."""


def no_labels(metric: str) -> str:
    """No source of labels."""
    return f"no labels are read for {metric}: the rubric names none (labels: {{labels: FILE, cases: FILE}})"


def chosen(
    cases: Iterable[LabelledCase], parts: Sequence[str], answer_of: Callable[[float | str], Json | None]
) -> tuple[str, ...]:
    """The examples as a prompt shows them: the judge's largest errors first, all answers in turn.

    Cases are left out that measure or show the same as one that measures, on which people disagree, or that are too
    long.

    Args:
        cases: labelled cases of one metric.
        parts: the parts of a case that the question shows.
        answer_of: the right answer by a label; None where the label is none of the answers.
    """
    shown: dict[str, tuple[LabelledCase, Json]] = {}
    measuring: set[str] = set()
    disputed: set[str] = set()
    for each in cases:
        text = _shown(each.case, parts)
        answers = [answer_of(label) for label in dict.fromkeys(each.labels)]
        if not all(map(teaches, filter(None, (each.case.case_id, each.case.trace_id)))):
            measuring.add(text)
        elif len(answers) != 1 or (text in shown and shown[text][1] != answers[0]):
            disputed.add(text)
        elif answers[0] is not None and len(text) <= LONGEST:
            shown.setdefault(text, (each, answers[0]))
    by_answer: dict[str, list[str]] = {}
    for text, (_, answer) in sorted(shown.items(), key=lambda item: (-_apart(item[1][0]), item[0])):
        if text not in measuring | disputed:
            by_answer.setdefault(json.dumps(answer), []).append(_example(text, answer))
    listed: list[str] = []
    while len(listed) < MOST and any(by_answer.values()):
        listed += [texts.pop(0) for _, texts in sorted(by_answer.items()) if texts]
    return tuple(listed[:MOST])


def _apart(each: LabelledCase) -> float:
    """The distance of the judge's verdict from the label; an unknown verdict lies between right and wrong."""
    label, verdict = each.labels[0], each.verdict
    if verdict is None:
        return 0.5
    if isinstance(label, str) or isinstance(verdict, str):
        return float(label != verdict)
    return abs(label - verdict)


def _shown(case: Case, parts: Sequence[str]) -> str:
    found: Mapping[str, str | None] = {name: part(case, name) for name in parts}
    return json.dumps({name: text for name, text in found.items() if text is not None}, ensure_ascii=False)


def _example(text: str, answer: Json) -> str:
    return f'{fence("example", text)}\n"answer": {json.dumps(answer, ensure_ascii=False)}'
