"""``sidejudge testcase``: a trace that failed, as a test with the right outcome."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .ask import TRACE_ID, fetched_trace, url_option
from .errors import CommandError, ending
from .settings import config_option, loaded

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.scoring.trace.span import Json


@click.command()
@click.argument("trace_id", metavar="TRACE_ID")
@click.option("--into", type=click.Path(path_type=Path), help="Test set (YAML, JSON, JSON Lines) to write it behind.")
@click.option("--dataset", metavar="NAME", help="Dataset of the configured Langfuse to write it into.")
@click.option("--expected", metavar="TEXT", help="The right outcome; JSON is read as JSON, '-' reads standard input.")
@click.option("--id", "name", metavar="ID", help="Of the test. Default: made of the trace's id.")
@url_option
@config_option
def testcase(
    trace_id: str, into: Path | None, dataset: str | None, *, expected: str | None, name: str | None, url: str,
    config: Path | None,
) -> int:  # fmt: skip
    """Write a judged trace as a test: the same input, with the right outcome.

    The trace is fetched from the running monitor at --url, which shows its contents as 'api.contents' allows. Without
    --expected the trace's own expected outcome is taken. A new file is readable by its owner alone. 'sidejudge test'
    puts the tests of a file to an agent.
    """
    from sidejudge.monitor.offline.test.test_file import TestSetError, append_test
    from sidejudge.scoring.lexical.amount import amount
    from sidejudge.scoring.runs.test_set import case_as_test, failing_metrics_of

    if (into is None) == (dataset is None):
        raise CommandError("name either --into FILE or --dataset NAME", "see 'sidejudge testcase --help'")
    settings = loaded(config).config
    if not TRACE_ID.fullmatch(trace_id):
        raise CommandError(
            f"{trace_id!r} is no trace id", "give 32 hex digits; 'sidejudge explain' lists the last traces"
        )
    found, case = fetched_trace(trace_id, url)
    if case.get("input") in (None, "", [], {}):
        raise CommandError(
            f"trace {trace_id} has no input", "a test needs one: choose a trace that shows what was asked"
        )
    outcome = case.get("expected_outcome") if expected is None else _outcome(expected)
    if outcome is None:
        raise CommandError("what would have been right is not known", "give it with --expected")
    test = case_as_test(case, outcome, failing_metrics_of(found.get("verdicts") or ()), name=name)
    if into is not None:
        with ending(TestSetError, remedy="mend the file, or give the test another --id; nothing was written"):
            tests = append_test(into, test, settings.scenarios)
        click.echo(f"{into}: {amount(tests, 'test')}, the last is {test['id']}")
    elif dataset is not None:
        asyncio.run(_send(dataset, test, settings, trace_id.lower()))
        click.echo(f"dataset {dataset}: {test['id']} was written")
    return 0


def _outcome(expected: str) -> Json:
    text = sys.stdin.read() if expected == "-" else expected
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text.strip()
    return value if isinstance(value, dict | list) else text.strip()


async def _send(dataset: str, test: dict[str, Json], settings: Config, trace_id: str) -> None:
    from sidejudge.integrations.langfuse.client import Langfuse
    from sidejudge.integrations.langfuse.datasets import NewDatasetItem, item_id, put_item
    from sidejudge.integrations.langfuse.errors import LangfuseError

    project = settings.sinks.langfuse or settings.sources.langfuse
    if project is None:
        raise CommandError(
            "no Langfuse is configured", "add sinks.langfuse or sources.langfuse, or write a file: --into"
        )
    item = NewDatasetItem(
        id=item_id(dataset, trace_id), input=test["input"], expected_output=test["expected"],
        metadata={key: test[key] for key in ("tags", "task", "config") if key in test}, source_trace_id=trace_id,
    )  # fmt: skip
    remedy = "create the dataset in Langfuse, or check the keys"
    with ending(LangfuseError, naming=f"dataset {dataset}: ", remedy=remedy):
        async with Langfuse(project.access) as langfuse:
            await put_item(langfuse, dataset, item)
