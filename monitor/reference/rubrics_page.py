"""metrics.md, rubrics.md and the page on the choice of a rubric, from the declarations of metrics and rubrics."""

from __future__ import annotations

from sidejudge.monitor.config.library import library
from sidejudge.monitor.config.rubric_section import METRIC_SCHEMA
from sidejudge.monitor.config.rubrics import (
    Card,
    Choice,
    cards,
    choices,
    citation,
    range_text,
    ready_choices,
    weight_text,
)
from sidejudge.scoring.checks.registry import CHECKS
from sidejudge.scoring.declared.ask import VARIABLES
from sidejudge.scoring.declared.cel import VIEW
from sidejudge.scoring.declared.rubric import KEYS
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.final import FINAL, RUN_SCORES, RunScore
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score import composite_name, pass_name

from .markdown import page, table

_WEIGHTS = {name: parts for score in RUN_SCORES for name, parts in score.weights.items()}


def metrics_page() -> str:
    """The reference page of all metrics as Markdown."""
    by_rubric = (_rubric_section(each, [card for card in cards() if card.rubric is each]) for each in RUBRICS.values())
    return page("metrics", rubrics="\n".join(by_rubric), final=_final_section())


def _final_section() -> str:
    rows = (
        (part, *(f"{of[part]:.0%}" if part in of else "–" for of in _WEIGHTS.values()))
        for part in next(iter(_WEIGHTS.values()))
    )
    return "\n".join((
        f"## {FINAL}\n\n**Scores of a run**, which `sidejudge scorecard` computes from verdicts.\n",
        table(("weight of", *_WEIGHTS), rows), "", *map(_run_score_section, RUN_SCORES),
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
    return "\n".join((head, metrics, "", *map(_metric_section, of_rubric)))


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


def rubrics_page() -> str:
    """The page on rubrics of one's own as Markdown."""
    checks = (
        (f"`{each.name}`", each.argument, each.holds, each.undefined, each.source + (
            f"; extra `{each.extra}`" if each.extra else "")) for each in CHECKS.values()
    )  # fmt: skip
    meanings = ((f"`{key}`", str(each.get("description", ""))) for key, each in METRIC_SCHEMA["properties"].items())
    return page(
        "rubrics",
        keys=", ".join(f"`{key}`" for key in KEYS),
        metric=table(("key", "meaning"), meanings),
        checks=table(("check", "argument", "passes when", "undefined when", "source"), checks),
        view=table(("name", "type", "meaning"), ((f"`{n}`", f"`{v.type}`", v.meaning) for n, v in VIEW.items())),
        variables=", ".join(f"`{{{{{name}}}}}`" for name in VARIABLES),
        ready=table(("rubric", "title", "source"), ((f"`{e.name}`", e.title, e.source) for e in library().values())),
    )


def which_rubric_page() -> str:
    """The page on the choice of a rubric as Markdown."""
    shipped = ((*_start(each), ", ".join(each.helps) or "–", each.cost) for each in choices())
    ready = ((*_start(each), each.cost) for each in ready_choices())
    return page(
        "which-rubric",
        shipped=table(("rubric", "for", "needs", "more with", "requests a trace"), shipped),
        ready=table(("rubric", "for", "needs", "requests a trace"), ready),
    )


def _start(each: Choice) -> tuple[str, str, str]:
    return f"`{each.id}`", each.purpose, ", ".join(each.needs) or "nothing"
