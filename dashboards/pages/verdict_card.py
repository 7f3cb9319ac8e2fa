"""Verdict card: one verdict whole: what was decided, metric by metric, how, and on what evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from scoring.lexical.label import MAX_REASON

from .card import card, facts, table
from .evidence import Evidence
from .failing_metrics import scores_of, value_of
from .html import escape
from .pills import pill, verdict_pill
from .workflow_diff import workflow_diff

_RATINGS = {
    "fail": "critical", "blocker": "critical", "acceptable": "warning", "good": "healthy", "pass": "healthy",
    "excellent": "healthy",
}  # fmt: skip
_DETAILS = 600


def verdict_card(verdict: Mapping[str, object], evidence: Sequence[Evidence], found: set[int]) -> str:
    """The section as HTML. ``found`` are the numbers of the evidence that is marked further down on the page."""
    rubric = str(verdict.get("rubric") or "")
    scores = scores_of(verdict)
    mine = [each for each in evidence if each.rubric == rubric]
    rows = (_row(score, [each for each in mine if each.metric == score.get("metric")], found) for score in scores)
    columns = ("Metric", "Value#", "Rating", "Weight#", "By", "Why")
    reason = f'<p class="reason">{escape(verdict["reason"], limit=MAX_REASON + 1)}</p>' if verdict.get("reason") else ""
    diff = workflow_diff(scores) if rubric == "workflow" else ""
    shown = table(f"Metrics of the verdict by {rubric}", columns, rows, stacked=True)
    body = f"{reason}{diff}{facts(_facts(verdict))}{shown}"
    return card(f"verdict-{escape(rubric)}", rubric, body, note=verdict_pill(verdict))


def _facts(verdict: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    composite, mark = verdict.get("composite"), verdict.get("pass_mark")
    yield "composite", f"{composite:.3f}" if isinstance(composite, int | float) else "none"
    if isinstance(mark, int | float):
        yield "pass mark", f"{mark:g}"
    yield "state", verdict.get("state") or "–"
    coverage = verdict.get("coverage")
    if isinstance(coverage, int | float) and coverage < 1:
        yield "coverage", f"{coverage:.0%}"
    revision = verdict.get("revision")
    yield "revision", f"{revision}, in place of {_former(revision)}" if revision != 1 else "1"
    yield "decided", str(verdict.get("created_at") or "–")[:19].replace("T", " ")
    yield "rubric", verdict.get("rubric_version") or "–"
    judge = verdict.get("judge")
    if isinstance(judge, Mapping) and judge.get("model"):
        yield "judge", f"{judge['model']}, {judge.get('calls', 0)} calls, ${float(judge.get('cost_usd') or 0):.4f}"


def _former(revision: object) -> str:
    return str(revision - 1) if isinstance(revision, int) else "an earlier one"


def _row(score: Mapping[str, object], evidence: Sequence[Evidence], found: set[int]) -> str:
    rating, weight = str(score.get("rating") or ""), score.get("weight")
    shown = pill(_RATINGS.get(rating, "insufficient_data"), escape(rating, limit=20)) if rating else "–"
    rated = "" if rating else ' data-name="rating"'
    method = _method(score)
    return (
        f'<tr><th scope="row" class="metric">{escape(score.get("metric") or "", limit=60)}</th>'
        f'<td class="number" data-name="value">{escape(value_of(score))}'
        f"<td{rated}>{shown}"
        f'<td class="number" data-name="weight">{f"{weight:.3g}" if isinstance(weight, int | float) else "–"}'
        f'<td data-name="by">{method}'
        f'<td class="why">{escape(score.get("reason") or "", limit=MAX_REASON + 1)}{_pointing(evidence, found)}'
        f"{_details(score)}</tr>"
    )


def _method(score: Mapping[str, object]) -> str:
    judge = score.get("judge")
    if not isinstance(judge, Mapping):
        return escape(score.get("method") or "–")
    flags = judge.get("flags")
    doubts = f" · {', '.join(map(str, flags))}" if isinstance(flags, list | tuple) and flags else ""
    return f'{escape(judge.get("model") or "judge", limit=60)}<span class="soft">{escape(doubts, limit=200)}</span>'


def _pointing(evidence: Sequence[Evidence], found: set[int]) -> str:
    """Links to what is marked; what is quoted and does not stand in what was said is told as well."""
    links = " ".join(
        f'<a href="#evidence-{each.number}">{"turn" if each.turn is not None else "quote"} {each.number}</a>'
        for each in evidence
        if each.number in found
    )
    return f'<div class="evidence">evidence: {links}</div>' if links else ""


def _details(score: Mapping[str, object]) -> str:
    details = score.get("details")
    if not isinstance(details, Mapping) or not any(details.values()):
        return ""
    text = json.dumps(details, ensure_ascii=False, default=str)
    return f"<details><summary>details</summary><code>{escape(text, limit=_DETAILS)}</code></details>"
