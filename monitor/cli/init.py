"""``sidejudge init``: a first configuration, from questions or from existing traces."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidejudge.monitor.offline.whole_file import write_whole
from sidejudge.scoring.lexical.amount import amount

from .errors import CommandError, ending, reading_store, warn
from .settings import FiniteRange
from .terminal import counted, visible, waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidejudge.monitor.offline.init.document import Choices
    from sidejudge.monitor.offline.init.proposal import Proposal, ProposedRoute
    from sidejudge.scoring.case.case import Case

_VARIABLE = re.compile(r"^(?!\s*#).*?(?<!\$)\$\{([A-Z][A-Z0-9_]*)\}", re.MULTILINE)
_STORE = (".sqlite", ".db")
_SCHEMA = "sidejudge.schema.json"
"""The schema that lets an editor complete and check keys. It is generated, so an existing one is replaced."""
_NAMED = 3
"""Sources that are named one by one."""
_BUDGET = FiniteRange(0, min_open=True)
_LANGFUSE = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")


@click.command(name="init")
@click.option(
    "--from-traces", "sources", multiple=True, metavar="URL|langfuse|FILE",
    help="What to look at: a running monitor's address, 'langfuse' (LANGFUSE_* of the environment), a store, recorded "
    "OTLP (.pb, .json), a folder of it, or cases (.jsonl). Repeatable for files.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("sidejudge.yaml"), show_default=True)
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@click.option("--judge", metavar="MODEL", help="A judge, such as openai/gpt-4o-mini-2024-07-18.")
@click.option("--budget", type=_BUDGET, default=1.0, show_default=True, help="USD an hour.")
@click.option("--langfuse", "langfuse", metavar="URL", help="Write scores to the traces in this Langfuse.")
@click.option("--forward", metavar="URL", help="Pass requests on to Langfuse, a Collector or any OTLP endpoint.")
@click.option("--kubernetes", is_flag=True, help="Write values for the Helm library chart; print the lines of a chart.")
@click.option("--compose", is_flag=True, help="Write compose.yaml beside the configuration.")
@click.option("--yes", is_flag=True, help="Ask nothing: take what the options say, and defaults.")
def init(  # noqa: PLR0917  # click passes options by name
    sources: tuple[str, ...], out: Path, judge: str | None, budget: float, langfuse: str | None, forward: str | None,
    *, force: bool, kubernetes: bool, compose: bool, yes: bool,
) -> int:  # fmt: skip
    """Write a commented configuration: routes by the names seen, rubrics that fit with the reason, scenarios, budgets.

    With --from-traces it is proposed from recorded traces; without it a few questions are asked. The file is checked
    before it is written. Existing files are kept unless --force is given. sidejudge.schema.json is written beside it,
    for editors to complete and check its keys.
    """
    from sidejudge.monitor.api.verdict_schemas import schema_text
    from sidejudge.monitor.offline.init import document as written
    from sidejudge.monitor.offline.init.document import Choices
    from sidejudge.monitor.offline.init.proposal import Proposal, propose, with_judge

    values = out.with_name("sidejudge-values.yaml")
    compose_file = out.with_name("compose.yaml")
    _refuse_existing([out, *([values] if kubernetes else ()), *([compose_file] if compose else ())], force=force)
    if sources:
        cases = _cases(sources)
        with waiting(f"learning from {amount(len(cases), 'trace')}"):
            proposal = propose(cases, judged=judge is not None)
        if not proposal.traces:
            click.echo("no trace with a model, an agent or a tool was found; the file holds defaults", err=True)
            proposal = with_judge(proposal) if judge is not None else proposal
        of = ", ".join(sources) if len(sources) <= _NAMED else f"{len(sources)} files"
        where = f"{amount(len(cases), 'trace')} of {of}"
        reads = "langfuse" in sources
        choices = Choices(
            source=where, judge=judge, budget_usd=budget, langfuse=langfuse or (_langfuse_base() if reads else None),
            read_langfuse=reads, forward=forward,
        )  # fmt: skip
    else:
        proposal = Proposal()
        choices = Choices(source="defaults", judge=judge, budget_usd=budget, langfuse=langfuse, forward=forward)
        if not yes:
            service, choices = _questions(choices)
            proposal = Proposal(routes=_one_route(service))
        if choices.judge is not None:
            proposal = with_judge(proposal)
    text = written.document(proposal, choices)
    _check(text)
    text = f"# yaml-language-server: $schema={_SCHEMA}\n{text}"
    _write(out, text)
    _write(out.with_name(_SCHEMA), schema_text("configuration"))
    secrets = list(dict.fromkeys(_VARIABLE.findall(text)))
    if kubernetes:
        _write(values, written.helm_values(text, secrets))
    if compose:
        _write(compose_file, written.compose(out.name, secrets))
    _summary(proposal, out, secrets)
    if kubernetes:
        click.echo(f"in your chart:\n\n{written.chart_lines()}")
    return 0


def _one_route(service: str) -> tuple[ProposedRoute, ...]:
    from sidejudge.monitor.offline.init.proposal import ProposedRoute

    reason = "run_health: needs nothing but the trace"
    route = ProposedRoute(match={"service": service}, rubrics=("run_health",), reasons=(reason,), traces=0)
    return (route,) if service else ()


def _refuse_existing(files: Sequence[Path], *, force: bool) -> None:
    there = [str(file) for file in files if file.exists()]
    if there and not force:
        raise CommandError(f"{', '.join(there)}: there already", "name another file with --out, or add --force")


def _cases(sources: Sequence[str]) -> list[Case]:
    """The cases of all sources; ``CommandError`` where one cannot be read."""
    from sidejudge.monitor.offline.init import sample

    named = [Path(source) for source in sources if source != "langfuse" and "://" not in source]
    files = [file for path in named for file in (sample.recordings(path) if path.is_dir() else [path])]
    for file in files:
        if not file.is_file():
            raise CommandError(f"--from-traces: {file} is no file", "name an address, 'langfuse', or a file")
    found: list[Case] = []
    for source in sources:
        if source == "langfuse":
            found += _langfuse_cases()
        elif "://" in source:
            from .ask import ask

            found += counted(sample.from_monitor(lambda path, url=source: ask(url, path)), "traces read")  # type: ignore[misc]  # bound now
    for store in [file for file in files if file.suffix in _STORE]:
        with reading_store("--from-traces: "):
            found += counted(sample.from_store(store), "traces read")
    recorded = [file for file in files if file.suffix not in _STORE]
    if recorded:
        from sidejudge.integrations.otlp.wire.recording import RecordingError
        from sidejudge.monitor.offline.score.case_lines import TableError

        with ending(RecordingError, TableError, remedy="give files of OTLP export requests or of cases"):
            found += counted(sample.from_files(recorded, warn), "traces read")
    return found


def _langfuse_base() -> str | None:
    return os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST")


def _langfuse_cases() -> list[Case]:
    import asyncio

    from sidejudge.integrations.langfuse.client import Access
    from sidejudge.integrations.langfuse.errors import LangfuseError
    from sidejudge.monitor.offline.init.sample import from_langfuse

    base = _langfuse_base() or "https://cloud.langfuse.com"
    public, secret = (os.environ.get(name) for name in _LANGFUSE)
    if not public or not secret:
        raise CommandError("--from-traces langfuse: no keys", f"set {' and '.join(_LANGFUSE)}")
    access = Access(base_url=base.rstrip("/"), public_key=public, secret_key=secret)
    remedy = "check LANGFUSE_BASE_URL and the keys"
    with ending(LangfuseError, naming="Langfuse: ", remedy=remedy), waiting("reading traces of Langfuse"):
        return asyncio.run(from_langfuse(access))


def _questions(choices: Choices) -> tuple[str, Choices]:
    """The service to watch, and what else was chosen; each question has an answer that suits most."""
    from dataclasses import replace

    if not _at_a_terminal():
        raise CommandError("there is no terminal to ask questions at", "add --yes, or --from-traces")
    click.echo("Four questions; Enter takes what stands in brackets.\n")
    service = click.prompt("Service to watch (service.name, * for all)", default="*", show_default=True)
    judge = choices.judge or click.prompt(
        "Model of a judge (empty: none, nothing is paid)", default="", show_default=False
    )
    if judge:
        choices = replace(
            choices, budget_usd=click.prompt("Its budget, USD an hour", default=choices.budget_usd, type=_BUDGET)
        )
    langfuse = choices.langfuse or click.prompt(
        "Langfuse that scores go to, such as https://cloud.langfuse.com (empty: none)", default="", show_default=False
    )
    forward = choices.forward or click.prompt(
        "Where requests go on to: Langfuse, a Collector (empty: nowhere)", default="", show_default=False
    )
    answered = replace(
        choices, source="answers", judge=judge or None, langfuse=langfuse or None, forward=forward or None
    )
    return ("" if service.strip() in {"", "*"} else service.strip()), answered


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()


def _check(text: str) -> None:
    """Refuse to write what the monitor would not read; variables that are not set yet are no mistake."""
    import tempfile

    from sidejudge.monitor.config import ConfigError, resolve

    environ = dict.fromkeys(_VARIABLE.findall(text), "to-be-set")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sidejudge.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            resolve(path, environ)
        except ConfigError as error:
            lines = "\n".join(problem.message for problem in error.problems)
            raise CommandError(f"what was chosen is no valid configuration: {lines}", "change that option") from None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    click.echo(f"written: {path}")


def _summary(proposal: Proposal, out: Path, secrets: Sequence[str]) -> None:
    for route in proposal.routes:
        where = ", ".join(f"{key} {value}" for key, value in route.match.items())
        click.echo(
            visible(
                f"  {where}: {', '.join(route.rubrics)}"
                + (f" ({amount(route.traces, 'trace')})" if route.traces else "")
            )
        )
    for hint in proposal.hints:
        click.echo(visible(f"  note: {hint}"))
    for name in secrets:
        click.echo(f"set {name}" if name not in os.environ else f"{name} is set")
    click.echo(f"next: sidejudge check {out}; sidejudge serve --config {out}")
