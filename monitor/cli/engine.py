"""The options ``--workers``, ``--engine`` and ``--address``: where the pieces of a command's input are processed.

Files of verdicts are read there too.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import click

from .errors import DATA, LOST, CommandError, ending

if TYPE_CHECKING:
    from pathlib import Path

    from sidejudge.monitor.offline.engine import Engine
    from sidejudge.monitor.offline.score.verdict_source import VerdictSource, VerdictTally

    from .terminal import ProgressDisplay

Function = TypeVar("Function", bound=Callable[..., object])


ADDRESS: Final = click.option(
    "--address", metavar="HOST:PORT|auto", help="Of the cluster. Default: Ray on this machine."
)
ENGINE: Final = click.option("--engine", type=click.Choice(["ray"]), help="Work on a Ray cluster.")


_WORTH_BYTES: Final = 8 << 20
"""Input for each process, in bytes: as much as one reads while two processes start."""


class EngineChoice(NamedTuple):
    """What the options say. ``workers`` is None where they leave it open."""

    engine: str | None
    address: str | None
    workers: int | None

    def by_size(self, size: int | None) -> EngineChoice:
        """The choice with as many processes as this much input (bytes, None for unknown) is worth, where it is open."""
        if self.engine is not None or self.workers is not None or size is None:
            return self
        return self._replace(workers=max(1, min(processors(), size // _WORTH_BYTES)))

    @property
    def elsewhere(self) -> bool:
        """Whether other processes work."""
        return self.engine is not None or self.workers not in (None, 1)

    @property
    def option(self) -> str:
        """The option that has other processes work, as errors name it."""
        return "--workers" if self.engine is None else f"--engine {self.engine}"


def processors() -> int:
    """How many processors this process may use, at least 1.

    By the kernel's affinity mask; a container's CPU quota is not considered.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Workers(click.IntRange):
    """A number of processes, or ``auto`` for one a processor."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return processors()
        try:
            return int(super().convert(cast("int", value), param, ctx))
        except click.BadParameter as error:
            self.fail(f"{error.message} 'auto' is one process a processor.", param, ctx)


def engine_options(function: Function) -> Function:
    """The three options; the command gets them as ``engine``."""

    @functools.wraps(function)
    def chosen(*args: Any, engine: str | None, address: str | None, workers: int | None, **others: Any) -> Any:
        return function(*args, engine=EngineChoice(engine, address, workers), **others)

    help_ = "Work in N processes; auto: one a processor."
    workers_option = click.option("--workers", type=_Workers(), metavar="N|auto", help=help_)
    return cast("Function", workers_option(ENGINE(ADDRESS(chosen))))


def read_verdicts(
    file: Path, tally: VerdictTally, shown: ProgressDisplay, engine: Engine, *, name: str = "", before: int = 0
) -> VerdictSource:
    """Have a file of verdicts counted. Lines that are none are reported behind ``name``; ``before`` bytes were read."""
    from sidejudge.monitor.offline.score.verdict_source import VerdictSource

    source = VerdictSource(path=file, complain=lambda text: shown.report(f"{name}{file}, {text}"), engine=engine)
    source.read_into(tally, lambda read: shown.step(before + read, None))
    return source


@contextlib.contextmanager
def engine_of(choice: EngineChoice) -> Iterator[Engine]:
    """The engine that the options name, this process without any; its errors become ``CommandError``."""
    from sidejudge.monitor.offline.engine import ElsewhereError, Here, Processes, RayCluster, WorkersLostError

    if choice.engine is None and choice.address is not None:
        raise CommandError("--address: is of a Ray cluster", "add --engine ray")
    with ending(ElsewhereError, naming=f"{choice.option}: ", code=DATA):
        try:
            if choice.engine is not None:
                with RayCluster(choice.address, choice.workers) as cluster:
                    yield cluster
            else:
                yield Processes(choice.workers or 1) if choice.elsewhere else Here()
        except WorkersLostError as error:
            remedy = f"{error.remedy}; resume by the same command: it goes on from what was judged"
            raise CommandError(f"{choice.option}: {error.cause}", remedy, LOST) from None
