"""metrics.md, rubrics.md and the page on the choice of a rubric, from the declarations of metrics and rubrics."""

from __future__ import annotations

from collections.abc import Iterator

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


_HEAD = """# Rubrics of your own

This page is generated from the declarations (`make reference`).

A rubric is data: under `rubrics:` in the configuration, or in files that `rubric_files:` names. Routes name it like
those that ship; everything else (scores, Langfuse, Prometheus, alerts, pages, `score`, `test`, `gate`) gets it from
there. `sidejudge check` reports its mistakes with file, line and remedy; `sidejudge try RUBRIC FILE` judges one
case and shows each step; `sidejudge rubrics list` has ready ones to start from.

```yaml other
rubrics:
  support-answer:
    title: Support answers
    pass_mark: 0.8
    metrics:
      - {id: cites_source, check: {regex: 'https?://docs\\.'}, weight: 0.2}
      - {id: no_promise, check: {not-icontains-any: [guarantee, promise]}, blocker: disqualify}
      - {id: quick, check: {latency: 3s}, weight: 0.1}
      - {id: refund_gate, cel: "!tools.exists(t, t.name == 'refund') || tools.exists(t, t.name == 'lookup_order')",
         blocker: disqualify}
      - {id: resolved, ask: "Does {{output}} resolve the request in {{input}}?", weight: 0.4}
      - {id: tone, ask: "What is the tone of {{output}}?", answer: {one_of: [warm, neutral, curt]},
         passes: [warm, neutral], weight: 0.1}
      - {id: completeness, ask: "How complete is {{output}}?", answer: {scale: [1, 5]}, good: 4, acceptable: 3,
         weight: 0.2}
      - {id: policy, python: "acme.metrics:refund_policy"}
```

Weights sum to 1; where none is stated, all metrics but prerequisites weigh the same. Under `extends` the metrics whose
weight is not stated share what is left. Without `pass_mark` a case passes that is acceptable everywhere. The version of
a rubric is a hash of its declaration; it stands in every verdict, and a status is of one version alone.
"""
_ASK = """
A question names what the judge is shown by variables; the output is always shown. Contents of traces are data between
fences and never become part of the question. All questions of a case, of all its rubrics, travel in one request where
they fit. An answer of another type than the declared one is no answer. A part that is not known leaves the metric
*unavailable*. `rate` asks of a share of the judged traces, drawn by the trace's id; the others are *not applicable*.
The text may lie in Langfuse: `ask: {langfuse_prompt: NAME, label: production}`; the version stands in the details.
"""
_PYTHON = """
`python: module:function` or the name of an installed one (entry point `sidejudge.metrics`). Modules are found where
packages are installed, and in the folder of the configuration. It gets the case (and the values of `with`) and
returns a truth value, a number, a text (`passes` names the categories that pass) or a result; a generator may yield
questions. It runs in a process of its own. A call that takes longer than `timeout` (1 s unless given) costs that metric
of that case, and the process is started anew; three in a row, and the function rests for a minute.
"""


def rubrics_page() -> str:
    """The page as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    yield f"A rubric has the keys {', '.join(f'`{key}`' for key in KEYS)}.\n"
    yield "## A metric\n"
    rows = ((f"`{key}`", str(each.get("description", ""))) for key, each in METRIC_SCHEMA["properties"].items())
    yield from table(("key", "meaning"), rows)
    yield "\n## Checks\n\nEach has its opposite, `not-NAME`. Several values of a target are looked at one by one:"
    yield "a check holds where one of them meets it, its opposite where none does. Checks of words compare characters"
    yield "as they are written: an accent that is a character of its own makes another text.\n"
    checks = (
        (f"`{each.name}`", each.argument, each.holds, each.undefined, each.source + (
            f"; extra `{each.extra}`" if each.extra else "")) for each in CHECKS.values()
    )  # fmt: skip
    yield from table(("check", "argument", "passes when", "undefined when", "source"), checks)
    yield "\n`on` sets what is looked at: `output` (unless given), `input`, `expected`, `context`, `tools`, `agents`,"
    yield "`transcript`, `turns`, `system_prompt`, `metadata.KEY`, `output.PATH`, `spans.FIELD`, `spans[NAME].FIELD`."
    yield "\n## Conditions in CEL\n\nTypes are checked before anything starts. What is not known leaves the metric"
    yield "*unavailable*. The extra `cel` brings the library.\n"
    yield from table(("name", "type", "meaning"), ((f"`{n}`", f"`{v.type}`", v.meaning) for n, v in VIEW.items()))
    yield f"\n## Questions\n{_ASK}"
    yield f"Variables: {', '.join(f'`{{{{{name}}}}}`' for name in VARIABLES)}, `{{{{metadata.KEY}}}}`.\n"
    yield f"## Functions\n{_PYTHON}"
    yield "## Ready rubrics\n"
    ready = ((f"`{each.name}`", each.title, each.source) for each in library().values())
    yield from table(("rubric", "title", "source"), ready)
    yield ""


_CHOICE_HEAD = """# Which rubric?

Generated from the declarations; do not edit (`make reference`). `sidejudge explain RUBRIC` shows one with all its
metrics, [Metrics](metrics.md) each metric in full.

Begin with `run_health`: it needs nothing but the trace, and judges every trace that no route matches. Then say what you
expect (`workflow`), and only then ask a judge.

| your traces are | and you have | begin with |
|---|---|---|
| runs of an agent | nothing yet | `run_health` |
| runs of an agent | a contract on tools and agents | `workflow` and `run_health` |
| runs of an agent | a judge | `agent`, or questions of your own |
| answers | a judge | `answer-relevance`, `instruction-following`, `tone` |
| answers from retrieved context | a judge | `rag-triad` or `faithfulness` |
| answers | a judge, better with reference answers | `answer`, `quality` or `dimensions` |
| structured output | nothing | `json-validity`, `sql-validity` |
| conversations | a judge, and `sessions` | `conversation-resolution` |
| anything with personal data | nothing | `pii` |
| recorded calls | reference answers | `qa`, `entity`, `text`, `translation` |

Without a judge `text`, `qa` and `benchmarks` notice figures, names and quotes that are made up. They do not notice
invented sentences, swapped roles or denials ([what words do not notice](../lexical.md)): for those configure a judge.
"""


def which_rubric_page() -> str:
    """The page as Markdown."""
    return "\n".join(_choice_lines())


def _choice_lines() -> Iterator[str]:
    yield _CHOICE_HEAD
    yield "## Rubrics that ship\n"
    yield "Named in a route or by `--rubric`. *Needs*: without it there is no verdict."
    yield "*More with*: what decides more where it is configured.\n"
    rows = ((*_start(each), ", ".join(each.helps) or "–", each.cost) for each in choices())
    yield from table(("rubric", "for", "needs", "more with", "requests a trace"), rows)
    yield "\n## Ready rubrics\n"
    yield "Files that become yours by `sidejudge rubrics add NAME` ([how](../how-to/ready-rubrics.md)).\n"
    ready = ((*_start(each), each.cost) for each in ready_choices())
    yield from table(("rubric", "for", "needs", "requests a trace"), ready)
    yield ""


def _start(each: Choice) -> tuple[str, str, str]:
    return f"`{each.id}`", each.purpose, ", ".join(each.needs) or "nothing"
