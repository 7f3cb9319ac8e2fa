"""which-rubric.md: what to judge by, from the declarations of the rubrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sidejudge.monitor.config.which_rubric import Choice, choices, ready_choices

_HEAD = """# Which rubric?

Generated from the declarations; do not edit (`make reference`). `sidejudge explain RUBRIC` shows one with all its
metrics, [Metrics](../../scoring/METRICS.md) each metric in full.

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
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    yield "## Rubrics that ship\n"
    yield "Named in a route or by `--rubric`. *Needs*: without it there is no verdict."
    yield "*More with*: what decides more where it is configured.\n"
    yield "| rubric | for | needs | more with | requests a trace |\n|---|---|---|---|---|"
    yield from (f"{_start(each)} | {', '.join(each.helps) or '–'} | {each.cost} |" for each in choices())
    yield "\n## Ready rubrics\n"
    yield "Files that become yours by `sidejudge rubrics add NAME` ([how](../how-to/ready-rubrics.md)).\n"
    yield from _table(ready_choices())
    yield ""


def _table(rows: Iterable[Choice]) -> Iterator[str]:
    yield "| rubric | for | needs | requests a trace |\n|---|---|---|---|"
    yield from (f"{_start(each)} | {each.cost} |" for each in rows)


def _start(each: Choice) -> str:
    return f"| `{each.id}` | {each.purpose} | {', '.join(each.needs) or 'nothing'}"
