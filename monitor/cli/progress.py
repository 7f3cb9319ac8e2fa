"""Progress on standard error, where somebody looks at it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import click

from .table import visible

Counts: TypeAlias = Callable[[], tuple[int, int, int]]
"""Returns how many have passed, failed, and done neither so far; called only when the bar is drawn anew."""
_STEP = {"bytes": 1 << 16, "tests": 1, "looks": 60}


@dataclass(frozen=True, slots=True)
class ProgressDisplay:
    """``step`` sets how far things are, and the source of the counts; ``report`` prints a line, made harmless."""

    step: Callable[[int, Counts | None], None]
    report: Callable[[str], None]


@contextlib.contextmanager
def progress(total: int | None, unit: Literal["bytes", "tests", "looks"]) -> Iterator[ProgressDisplay]:
    """A bar over ``total`` on a terminal; without a total (a pipe) or a terminal, only messages are shown."""
    if total is None or not sys.stderr.isatty():
        yield ProgressDisplay(lambda _done, _counts: None, lambda text: click.echo(visible(text), err=True))
        return
    from rich.console import Console  # only where there is someone to see it
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    done_column = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (BarColumn(bar_width=None), done_column, TextColumn("{task.description}"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as bar:
        task = bar.add_task("", total=total)
        drawn = 0

        def step(done: int, counts: Counts | None) -> None:
            nonlocal drawn
            if done - drawn >= _STEP[unit]:
                drawn = done
                bar.update(task, completed=done, description=_reported(counts))

        # Above the bar, not through it; unformatted, because a message may quote anything.
        yield ProgressDisplay(
            step, lambda text: console.print(visible(text), markup=False, highlight=False, soft_wrap=True)
        )


def _reported(counts: Counts | None) -> str:
    if counts is None:
        return ""
    passed, failed, incomplete = counts()
    return f"[green]{passed} passed[/] [red]{failed} failed[/] [yellow]{incomplete} incomplete[/]"
