"""A bar that shows how far the reading of a file has come."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

_STEP = 1 << 16


@contextlib.contextmanager
def bar(total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over ``total`` bytes on standard error, on a terminal only; it hears how many have been read.

    Without a total (a pipe) there is none.
    """
    if total is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  # only where there is someone to see it
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    columns = (BarColumn(bar_width=None), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as shown:
        task = shown.add_task("", total=total)
        drawn = 0

        def step(read: int) -> None:
            nonlocal drawn
            if read - drawn >= _STEP:
                drawn = read
                shown.update(task, completed=read)

        yield step
