"""The options ``--workers``, ``--engine`` and ``--address``: where the pieces of a command's input are worked on."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import click

from .errors import DATA, CommandError

if TYPE_CHECKING:
    from sidejudge.monitor.offline.engine.engine import Engine

Function = TypeVar("Function", bound=Callable[..., object])


ADDRESS: Final = click.option(
    "--address", metavar="HOST:PORT|auto", help="Of the cluster. Default: Ray on this machine."
)
ENGINE: Final = click.option("--engine", type=click.Choice(["ray"]), help="Work on a Ray cluster.")


class EngineChoice(NamedTuple):
    """What the options say."""

    engine: str | None
    address: str | None
    workers: int | None

    @property
    def elsewhere(self) -> bool:
        """Whether other processes work."""
        return self.engine is not None or self.workers not in (None, 1)

    @property
    def option(self) -> str:
        """The option that has other processes work, as errors name it."""
        return "--workers" if self.engine is None else f"--engine {self.engine}"


def engine_options(function: Function) -> Function:
    """The three options; the command gets them as ``engine``."""

    @functools.wraps(function)
    def chosen(*args: Any, engine: str | None, address: str | None, workers: int | None, **others: Any) -> Any:
        return function(*args, engine=EngineChoice(engine, address, workers), **others)

    command: Any = chosen
    for option in (
        ADDRESS,
        ENGINE,
        click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Work in N processes."),
    ):
        command = option(command)
    return cast("Function", command)


@contextlib.contextmanager
def engine_of(choice: EngineChoice) -> Iterator[Engine]:
    """The engine that the options name, this process without any; its errors become ``CommandError``."""
    from sidejudge.monitor.offline.engine.engine import ElsewhereError, Here
    from sidejudge.monitor.offline.engine.processes import Processes
    from sidejudge.monitor.offline.engine.ray_cluster import RayCluster

    if choice.engine is None and choice.address is not None:
        raise CommandError("--address: is of a Ray cluster", "add --engine ray")
    try:
        if choice.engine is not None:
            with RayCluster(choice.address, choice.workers) as cluster:
                yield cluster
        else:
            yield Processes(choice.workers or 1) if choice.elsewhere else Here()
    except ElsewhereError as error:
        raise CommandError(f"{choice.option}: {error.cause}", error.remedy, DATA) from None
