"""``sidejudge test --langfuse-dataset``: the run as an experiment in Langfuse, and what is shown of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from .errors import DATA, CommandError

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.offline.test.run import Agent


def experiment(
    settings: Config,
    dataset: str,
    rubrics: Sequence[str],
    agent: Callable[[], Agent],
    *,
    concurrency: int,
    timeout_s: float,
    form: str,
) -> int:
    """Run it and show what came of it; the exit code, 1 unless all items passed and all scores arrived."""
    from sidejudge.monitor.config.extras import LANGFUSE, installed
    from sidejudge.monitor.offline.experiment.dataset_run import NoDatasetError, UnfitSdkError, run_dataset
    from sidejudge.scoring.runs.summary import SEED_RUBRIC

    from .table import table

    project = settings.langfuse
    if project is None:
        raise CommandError("--langfuse-dataset: no Langfuse is configured", "give sinks.langfuse in --config")
    if not installed(LANGFUSE):
        raise CommandError("--langfuse-dataset needs Langfuse's SDK", LANGFUSE.remedy)
    try:
        found = run_dataset(
            project.access, dataset, agent=agent, rubrics=rubrics or (SEED_RUBRIC,), config=settings, name=dataset,
            concurrency=concurrency, timeout_s=timeout_s,
        )  # fmt: skip
    except UnfitSdkError as error:
        remedy = "upgrade Langfuse to 4.59 or later, or install the SDK that fits: pip install 'langfuse>=4.18,<5'"
        raise CommandError(f"--langfuse-dataset: {error}", remedy) from error
    except NoDatasetError as error:
        raise CommandError(f"--langfuse-dataset: {error}", "'sidejudge doctor' shows what the keys can read") from error
    if form == "json":
        click.echo(json.dumps({**asdict(found), "passed": found.passed}, indent=2))
    else:
        rows = [
            (
                name, str(each.passed), str(each.failed), str(each.not_judged),
                "" if each.lower is None else f"{each.lower:.3f}–{each.upper:.3f}",
            )
            for name, each in found.rubrics.items()
        ]  # fmt: skip
        click.echo(f"{found.items} items of {dataset}")
        click.echo(table(("rubric", "passed", "failed", "no verdict", "pass rate, 95 %"), rows))
        click.echo(
            f"\n{found.url}" if found.url else "\nthe experiment's page is not known: the project cannot be read"
        )
    if found.missing:
        click.echo(f"{found.missing} of {found.scores} scores are not in Langfuse, which took them", err=True)
    elif found.missing is None:
        click.echo(f"whether the scores are in Langfuse is not known: {found.unread}", err=True)
    return 0 if found.passed else DATA
