"""What ``sidejudge test`` shows people: counts by rubric, tag and complexity, and why tests failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from sidejudge.monitor.offline.score.remarks import Gaps
from sidejudge.monitor.offline.score.tally import Count, ScoreTally
from sidejudge.monitor.offline.test.run import FinishedTest
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.runs.test_set import TestSet, complexity_of, tags_of

from .table import number, paragraph, share, table, visible

if TYPE_CHECKING:
    from sidejudge.scoring.trace.span import JsonRecord

_FAILURES = 10
_REASON = 300
_HEAD = ("n", "passed", "failed", "incomplete", "pass rate")


def report(tests: TestSet, found: Sequence[FinishedTest], summary: JsonRecord, expense: str | None) -> None:
    """Print it all. ``expense`` is what judging cost, None without a judge."""
    tally, tags, complexities = ScoreTally(), dict[str, Count](), dict[str, Count]()
    for one in found:
        for verdict in one.verdicts:
            tally.add(verdict)
        score = one.outcome.evaluation
        for tag in dict.fromkeys(tags_of(one.outcome.test)):
            tags.setdefault(tag, Count()).add(score.passed, score.overall_score)
        complexities.setdefault(complexity_of(one.outcome.test), Count()).add(score.passed, score.overall_score)
    for title, counts in (("rubric", tally.rubrics), ("tag", tags), ("complexity", complexities)):
        if counts:
            click.echo(table((title, *_HEAD), [_row(name, count) for name, count in counts.items()]) + "\n")
    for line in (*_failures(found, summary), *_incomplete(tally.gaps), *_repeats(summary)):
        click.echo(line)
    if expense is not None:
        click.echo(expense)
    click.echo(_last_line(tests, found, summary))


def _row(name: str, c: Count) -> tuple[str, ...]:
    return (label(name), str(c.n), str(c.passed), str(c.failed), str(c.incomplete), share(c.pass_rate))


def _failures(found: Sequence[FinishedTest], summary: JsonRecord) -> Iterator[str]:
    failed = [one for one in found if one.outcome.evaluation.passed is False]
    if not failed:
        return
    yield click.style(f"FAILED ({len(failed)})", bold=True)
    for one in failed[:_FAILURES]:
        run = f" (run {one.outcome.run})" if "repeats" in summary else ""
        name = click.style(visible(label(str(one.outcome.test["id"]))), fg="red")
        yield paragraph(f"  {name}{run}: {visible(label(_why(one), _REASON))}", 4)
    if len(failed) > _FAILURES:
        yield f"  … and {len(failed) - _FAILURES} more; --format json or --out shows all"
    yield ""


def _why(one: FinishedTest) -> str:
    if one.outcome.error is not None:
        return f"no output: {one.outcome.error}"
    failing = [verdict for verdict in one.verdicts if verdict["passed"] is False]
    return "; ".join(f"{verdict['rubric']}: {verdict.get('reason')}" for verdict in failing)


def _incomplete(gaps: Gaps) -> Iterator[str]:
    """Why there are verdicts that neither passed nor failed, and what to do."""
    if gaps.count:
        yield click.style(f"INCOMPLETE VERDICTS ({gaps.count})", bold=True)
        yield from (paragraph(f"  {visible(line)}", 4) for line in gaps.reported())
        yield ""


def _repeats(summary: JsonRecord) -> Iterator[str]:
    if "repeats" not in summary:
        return
    reported = summary["repeats"]
    rows = [
        (name, *(number(reported[key][part]) for part in ("mean", "sd")), " ".join(map(number, reported[key]["each"])))
        for key, name in (("pass_rate", "pass rate"), ("overall_score", "mean overall score"))
    ]
    yield table((f"over {reported['runs']} runs", "mean", "sd", "each"), rows) + "\n"


def _last_line(tests: TestSet, found: Sequence[FinishedTest], summary: JsonRecord) -> str:
    parts = [f"{summary[name]} {name}" for name in ("passed", "failed", "incomplete")]
    if summary["errors"]:
        parts[1] += f" ({summary['errors']} without an output)"
    resumed = sum(one.resumed for one in found)
    again = f"; {resumed} stood already and {'was' if resumed == 1 else 'were'} not run again" if resumed else ""
    return f"{visible(label(tests.name))}: {len(found)} run: {', '.join(parts)}{again}"
