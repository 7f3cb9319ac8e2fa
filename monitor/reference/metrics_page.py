"""metrics.md: every metric of every rubric, from the declarations of the rubrics."""

from __future__ import annotations

from sidejudge.monitor.config.rubrics import Card, cards, citation, range_text, weight_text
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.final import FINAL, RUN_SCORES, RunScore
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score import composite_name, pass_name

from .markdown import table

_WEIGHTS = {name: parts for score in RUN_SCORES for name, parts in score.weights.items()}
_METRICS_HEAD = """\
# Metrics

Generated from the declarations in `scoring/rubrics/`; do not edit. `sidejudge explain METRIC` shows the same.

- A metric has a value, or a reason why it has none: *not applicable* (nothing to measure), *unavailable* (what it needs
  is missing), *error* (it was tried and failed). Never a default.
- A value at a bound is in the better band; values are compared after rounding to 9 decimals.
- A blocker makes the composite *invalid* (no number) or the verdict *disqualified* (the number stands); neither passes.
- Where parts of the weight have no value, the others are renormalised as long as the coverage suffices; below that the
  verdict is *incomplete*: it neither passes nor fails, and enters no pass rate.
- A score name is what a score is called where verdicts are written back: `<rubric>_<metric>`, at most 35 characters; a
  longer one is made of the metric's fixed short form.
"""


def metrics_page() -> str:
    """The reference page of all metrics as Markdown."""
    parts = [_METRICS_HEAD]
    for rubric in RUBRICS.values():
        of_rubric = [card for card in cards() if card.rubric is rubric]
        parts.append(_rubric_section(rubric, of_rubric))
    parts.append(_final_section())
    return "\n".join(parts)


def _final_section() -> str:
    rows = (
        (part, *(f"{of[part]:.0%}" if part in of else "–" for of in _WEIGHTS.values()))
        for part in next(iter(_WEIGHTS.values()))
    )
    return "\n".join((
        f"## {FINAL}\n\n**Scores of a run**, which `sidejudge scorecard` computes from verdicts.\n",
        *table(("weight of", *_WEIGHTS), rows), "", *map(_run_score_section, RUN_SCORES),
    ))  # fmt: skip


def _run_score_section(score: RunScore) -> str:
    return (
        f"### {FINAL} {score.id}\n\n{score.title}. {score.meaning}\n\n- Formula: {score.formula}\n"
        f"- Unit: {score.unit}, in {range_text(score.bounds)}\n- Undefined: {score.undefined}\n"
        f"- Source: {citation(score.source)}\n"
    )


def _rubric_section(rubric: Rubric, of_rubric: list[Card]) -> str:
    mark = f"`{rubric.pass_mark:g}`" if rubric.pass_mark is not None else "none: the conditions of the formula decide"
    rows = ((f"[`{c.id}`](#{rubric.id}-{c.id})", _weight(c), c.bands, c.blocker) for c in of_rubric)
    head = (
        f"## {rubric.id}\n\n**{rubric.title}.** {citation(rubric.source)}. Version `{rubric.version}`.\n\n"
        f"- Formula: {rubric.formula}\n- Scale: 0–{rubric.scale:g}\n- Pass mark: {mark}\n"
        f"- Minimum coverage: {rubric.min_coverage:g}\n- Score names: composite `{composite_name(rubric.id)}`, pass "
        f"`{pass_name(rubric.id)}`\n"
    )
    metrics = table(("metric", "weight", "bands", "blocker"), rows)
    return "\n".join((head, *metrics, "", *map(_metric_section, of_rubric)))


def _metric_section(card: Card) -> str:
    metric = card.criterion.metric
    return (
        f"### {card.rubric.id} {card.id}\n\n{metric.title}. {metric.meaning}\n\n"
        f"- Formula: {metric.formula}\n- Unit: {metric.unit}, in {card.range}\n- Weight: {_weight(card)}\n"
        f"- Bands: {card.bands}\n- Blocker: {card.blocker}\n"
        f"- Score name: `{card.score_name}`\n- Decided by: {', '.join(method.value for method in metric.methods)}\n"
        f"- Undefined: {metric.undefined}\n- Source: {citation(metric.source)}\n"
    )


def _weight(card: Card) -> str:
    if card.criterion in card.rubric.opt_in:
        return "opt-in"
    return weight_text(card.criterion.weight) if card.criterion.weight else "–"
