"""``sidejudge try``: judge one trace or case by one rubric, and show each step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from .ask import TRACE_ID, ask_bytes, fetched_trace, url_option
from .errors import DATA, CommandError, ending, near
from .settings import config_option, own_name, runnable
from .terminal import table, visible, waiting

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.offline.try_rubric import RawAnswer, Round
    from sidejudge.scoring.case.case import Case
    from sidejudge.scoring.verdict.rubric import Rubric
    from sidejudge.scoring.verdict.verdict import Verdict


_HEAD: Final = 1_000
"""Bytes of a file that are looked at."""


@click.command("try")
@click.argument("rubric", callback=own_name)
@click.argument("what", metavar="TRACE_ID|FILE")
@click.option("--case", "case_id", help="Of a file with several cases or traces: this one. Default: the first.")
@url_option
@config_option
def try_rubric(rubric: str, what: str, case_id: str | None, url: str, config: Path | None) -> int:
    """Judge one trace at once by RUBRIC (of the configuration, or a ready one), and show each step.

    FILE holds cases (JSON Lines, CSV or Parquet, as for 'score') or recorded OTLP (.pb or .json). A trace is fetched
    from the running monitor at --url, which shows its contents as 'api.contents' allows. Nothing is recorded.
    """
    from sidejudge.monitor.offline.score.request import run_backends
    from sidejudge.monitor.offline.try_rubric import RawAnswers
    from sidejudge.monitor.offline.try_rubric import try_rubric as judged
    from sidejudge.monitor.route.router import Router

    settings = runnable(config).config
    chosen, case = _rubric(rubric, settings), _case(what, case_id, url)
    route = Router(settings.routes, settings.scenarios, budgets=settings.budgets).chosen([rubric], case)
    case = route.applied_to(case)
    raw = RawAnswers()
    backends = run_backends(settings, raw, forgetful=True)

    async def run() -> tuple[Verdict, Sequence[Round]]:
        try:
            return await judged(case, chosen, backends, created_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        finally:
            await backends.close()

    with waiting(f"judging by {rubric}"):
        verdict, rounds = asyncio.run(run())
    for line in _shown(verdict, rounds, raw.seen):
        click.echo(line)
    return 0 if verdict.passed else DATA


def _rubric(name: str, settings: Config) -> Rubric:
    from sidejudge.monitor.config.library import library
    from sidejudge.monitor.config.rubrics import configured

    known, ready = configured(settings), library()
    if name in known:
        return known[name]
    if name not in ready:
        every = [*known, *ready]
        raise CommandError(f"there is no rubric {name!r}", near(name, every, f"choose from {', '.join(every)}"))
    from sidejudge.scoring.declared.metric import Sources
    from sidejudge.scoring.declared.reading import DeclarationError
    from sidejudge.scoring.declared.rubric import declared_rubric

    remedy = "install what it needs, or add it to your folder and change it"
    with ending(DeclarationError, naming=f"{name}: ", remedy=remedy):
        return declared_rubric(name, ready[name].declared, Sources(rubrics=known))


def _case(what: str, case_id: str | None, url: str) -> Case:
    if TRACE_ID.fullmatch(what):
        return _fetched(what, url)
    cases = list(_cases(Path(what)))
    if case_id is not None:
        cases = [each for each in cases if each.case_id == case_id]
    if not cases:
        wanted = f" {case_id!r}" if case_id is not None else ""
        raise CommandError(f"{what}: there is no case{wanted}", "name another file or another --case")
    return cases[0]


def _fetched(trace_id: str, url: str) -> Case:
    """The case of a trace with its spans; without them from a monitor that does not give them."""
    from sidejudge.integrations.cases.fields import case_of
    from sidejudge.integrations.otlp.wire.decode import decode_spans
    from sidejudge.monitor.api.inspect import inspect_spans

    body = ask_bytes(url, f"/v1/traces/{trace_id.lower()}/spans")
    read = next(iter(inspect_spans(decode_spans(body))), None) if body is not None else None
    return case_of(fetched_trace(trace_id, url)[1]) if read is None else read.case


def _cases(path: Path) -> Iterator[Case]:
    from sidejudge.integrations.otlp.wire.recording import RecordingError, read_files
    from sidejudge.monitor.api.inspect import inspect_spans
    from sidejudge.monitor.offline.score.case_lines import TableError, case_lines, read_cases

    def refuse(why: str) -> None:
        raise CommandError(f"{path}: {why}", "give one case a line, as 'score' reads them") from None

    with path.open("rb") as file:
        head = file.read(_HEAD)
    if path.suffix == ".pb" or b'"resourceSpans"' in head:
        with ending(RecordingError, remedy="give a file with one OTLP export request"):
            recording = read_files([path])
        yield from (found.case for found in inspect_spans(recording.spans))
        return
    with ending(TableError), case_lines(path) as found:
        yield from read_cases(found, refuse)


def _shown(verdict: Verdict, rounds: Sequence[Round], raw: Sequence[RawAnswer]) -> Iterator[str]:
    from sidejudge.scoring.lexical.amount import beside
    from sidejudge.scoring.questions.question import Answer
    from sidejudge.scoring.result.result import Scored

    for number, each in enumerate(rounds, 1):
        for messages in each.prompts:
            yield click.style(f"asked (round {number})", bold=True)
            for message in messages:
                yield f"--- {message['role']}\n{visible_text(message['content'])}"
        for question, reply in each.replies:
            name = getattr(question, "metric", type(question).__name__)
            if isinstance(reply, Answer):
                yield f"answer to {name}: {reply.value!r} by {reply.method.value}: {visible(reply.reason)}"
            else:
                yield f"no answer to {name}: {visible(reply.reason) if reply is not None else 'nobody was asked'}"
    for one in raw:
        outcome = "used" if one.failure is None else f"not used: {one.failure}"
        yield click.style(f"raw answer of {one.model} ({outcome})", bold=True)
        yield visible_text(one.text)
    rows = [
        (
            score.metric,
            f"{score.result.value:g}" if isinstance(score.result, Scored) else score.result.status,
            f"{score.weight:.3g}",
            score.rating or "-",
            visible(score.result.reason),
        )
        for score in verdict.scores
    ]
    yield table(("metric", "value", "weight", "rating", "reason"), rows)
    composite = "-" if verdict.composite is None else beside(verdict.composite, verdict.pass_mark)
    passed = {True: "passed", False: "failed", None: "neither passed nor failed"}[verdict.passed]
    yield f"{verdict.rubric_version}: {verdict.state.value}, composite {composite}, {passed}"
    if verdict.reason:
        yield f"  {visible(verdict.reason)}"


def visible_text(text: str) -> str:
    """A text of several lines for a terminal, without escape sequences."""
    return "\n".join(visible(line) for line in text.splitlines())
