"""``sidejudge inspect``: what is read from recorded OTLP."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidejudge.scoring.lexical.amount import amount

from .errors import DATA, CommandError, warn
from .settings import config_option, loaded
from .terminal import escaped, table, visible, waiting

if TYPE_CHECKING:
    from rich.tree import Tree

    from sidejudge.integrations.otlp.wire.recording import Recording
    from sidejudge.monitor.api.inspect import Inspected
    from sidejudge.scoring.case.case import Case


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["json", "tree"]), help="Default: tree on a terminal, else json.")
@click.option("-v", "--verbose", is_flag=True, help="Also show which attribute each field was read from.")
@click.option("--unread", is_flag=True, help="Show what was seen and not understood, with counts, client by client.")
@config_option
def inspect(
    files: tuple[Path, ...],
    form: str | None,
    verbose: bool,  # noqa: FBT001  # click's signature
    unread: bool,  # noqa: FBT001  # click's signature
    config: Path | None,
) -> int:
    """Show what is read from recorded OTLP: one case for each trace.

    FILEs hold trace or log requests, protobuf (.pb) or JSON (.json). All of them together are one delivery, in any
    order; contents that travel in log records are shown with their spans. With --format json, one JSON object a line,
    in the case format, which 'score' reads. Names that --unread lists can be given a meaning in the configuration:
    sources.attributes.
    """
    from sidejudge.integrations.dialects import map_attributes
    from sidejudge.monitor.api.inspect import inspect_spans

    if config is not None:
        map_attributes(loaded(config).config.sources.attributes)
    recording = _recorded(files)
    problems = 0
    if recording.skipped:
        problems += 1
        warn(f"{amount(recording.skipped, 'span')} left out: no valid trace or span id", "examine the exporter")
    with waiting("reading traces"):
        inspected = list(inspect_spans(recording.spans))
    if not recording.spans:
        problems += 1
        logs = f", only {amount(len(recording.logs), 'log record')}" if recording.logs else ""
        warn(f"there is no span in these files{logs}", "record trace requests (POST /v1/traces)")
    elif recording.strays:
        warn(
            f"{amount(recording.strays, 'event')} in log records not seen: their spans are not in these files",
            "give all requests of the delivery, traces and logs",
        )
    as_json = form == "json" or (form is None and not sys.stdout.isatty())
    if unread:
        _show_unread(inspected, as_json=as_json)
        return DATA if problems else 0
    for found in inspected:
        if found.misread:
            problems += 1
            warn(
                f"trace {found.trace.trace_id}: {amount(len(found.misread), 'span')} could be read only in part",
                "see their provenance (-v --format json) and report it",
            )
        if as_json:
            import orjson

            click.echo(escaped(orjson.dumps(found.to_json(provenance=verbose)).decode()))
        else:
            from rich.console import Console

            Console(highlight=False).print(_tree(found, verbose=verbose))
    return DATA if problems else 0


def _recorded(files: tuple[Path, ...]) -> Recording:
    from sidejudge.integrations.otlp.wire.recording import RecordingError, read_files

    if any(str(file) == "-" for file in files):
        raise CommandError("-: standard input is not read", "name the files, each with one OTLP export request")
    try:
        with waiting("reading"):
            return read_files(files)
    except RecordingError as error:
        unpack = "unpack what is compressed with gunzip, and " if error.compressed else ""
        remedy = f"{unpack}give files that each hold one OTLP export request (.pb or .json)"
        raise CommandError("\n".join(error.problems), remedy) from error


def _show_unread(inspected: Sequence[Inspected], *, as_json: bool) -> None:
    """One line for each name: its client, place, shape, possible meaning, and number of spans."""
    from sidejudge.scoring.trace.trace import unread_counts

    counted = unread_counts(found.trace for found in inspected)
    if as_json:
        import orjson

        for each, spans in counted:
            line = {"client": each.client, "source": each.source, "shape": each.shape, "may_be": each.field or None}
            click.echo(orjson.dumps({**line, "spans": spans}).decode())
        return
    if not counted:
        click.echo("all contents that were seen are understood")
        return
    rows = [
        [each.client or "unknown", each.source, each.shape, each.field or "input or output", str(spans)]
        for each, spans in counted
    ]
    click.echo(table(["client", "not understood", "shape", "may be", "spans"], rows))


def _tree(found: Inspected, *, verbose: bool) -> Tree:
    """One trace for people: request and answer, the agents, the tools, then its cost and its user."""
    from rich.text import Text
    from rich.tree import Tree

    def add(to: Tree, label: str, value: object) -> Tree:
        return to.add(Text.assemble((f"{label}  ", "red" if label == "error" else "cyan"), _short(value)))

    top = Tree(Text(f"{_short(found.case.name)}  {found.case.trace_id}", style="bold"))
    for label, value in _contents(found.case):
        add(top, label, value)
    for call in found.case.tools_used or ():
        node = add(top, "hand-off" if call.handoff else "tool", call.name)
        add(node, "arguments", call.arguments)
        add(node, *(("result", call.result) if call.error is None else ("error", call.error)))
    for label, value in _circumstances(found):
        add(top, label, value)
    for span in found.trace.spans if verbose else ():
        node = add(top, "span", f"{span.name} ({span.kind.value}, {span.dialect})")
        for field, source in sorted(span.provenance.items()):
            add(node, field, f"← {source}")
    return top


def _contents(case: Case) -> Iterator[tuple[str, object]]:
    yield "input", case.input
    yield "output", case.model_output
    if case.expected_outcome is not None:
        yield "expected", case.expected_outcome
    if case.error is not None:
        yield "error", case.error
    yield "agents", " → ".join(case.agents_called or ()) or "none seen"
    if case.tools_used is None:
        yield "tools", "unknown: no message contents were read"
    for passage in case.context or ():
        yield "retrieved", passage


def _circumstances(found: Inspected) -> Iterator[tuple[str, object]]:
    from sidejudge.monitor.api.inspect import SHOWN, UNREAD

    case = found.case
    tokens = "unknown" if case.input_tokens is None else f"{case.input_tokens} in, {case.output_tokens} out"
    latency = "unknown" if case.latency_e2e_ms is None else f"{case.latency_e2e_ms:.0f} ms"
    yield "model", f"{case.model or 'unknown'}; tokens {tokens}; latency {latency}"
    labels = {
        "session": case.session_id, "user": case.user_id, "tags": list(case.tags), "metadata": dict(case.metadata),
        "environment": case.environment, "service": case.service, "dialects": ", ".join(found.dialects),
    }  # fmt: skip
    yield from ((label, value) for label, value in labels.items() if value)
    if found.unread:
        yield "contents", f"{UNREAD}: {', '.join(found.unread[:SHOWN])}"
    elif not case.content_captured:
        yield "contents", f"not captured; to capture them: {case.capture_switch or 'unknown'}"
    if not case.complete:
        yield "incomplete", "spans are missing, so that what is not here may still have happened"


def _short(value: object, longest: int = 400) -> str:
    """A value on one line, cut at 400 characters, terminal escapes made harmless."""
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text[: 4 * longest].split())
    return visible(text if len(text) <= longest else text[:longest] + "…")
