"""Guard: a decorator that judges a function's output before the caller gets it.

A monitor judges a sample, later; a guard judges every output, and its caller waits. An output that could not be judged
passes: a guard that blocks whenever a judge is away would be an outage itself.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from sidejudge.monitor.config import Config
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.verdict.verdict import Verdict

from .evaluators import evaluations
from .inline import InlineJudge

log = logging.getLogger("sidejudge.guard")

_Function = TypeVar("_Function", bound=Callable[..., Any])


class GuardError(SidejudgeError):
    """An output did not pass. ``verdict`` has the reasons."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.rubric}: {verdict.reason}")
        self.verdict = verdict


def guard(
    rubric: str,
    *,
    config: Config | Path | str | None = None,
    on_fail: Callable[[Verdict, Any], Any] | None = None,
    timeout_s: float = 10.0,
    score_trace: bool = False,
) -> Callable[[_Function], _Function]:
    """Judge the output of a function, or coroutine function, by a rubric.

    Args:
        rubric: Name of a rubric.
        config: A configuration file, for rubrics of your own and a judge; None: the defaults.
        on_fail: Is called with the verdict and the output that fails, and what it returns is returned; None: raise.
        timeout_s: How long judging may take, in s; after that the output passes, with a warning in the log.
        score_trace: Write the scores to the current trace of Langfuse's SDK.

    Raises:
        ConfigError: The file is wrong.
        ValueError: There is no such rubric.
        GuardError: By the decorated function, where an output fails and ``on_fail`` is None.
    """
    judge = InlineJudge(rubric, config, waits=False)  # whoever waits is the application

    def settled(verdict: Verdict | None, output: Any) -> Any:
        """The value for the caller."""
        if verdict is not None and score_trace:
            _score_current_trace(judge, verdict)
        if verdict is None or verdict.passed is not False:
            return output
        if on_fail is None:
            raise GuardError(verdict)
        return on_fail(verdict, output)

    def wrap(function: _Function) -> _Function:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            output, verdict = function(*args, **kwargs), None
            try:
                judging = judge.verdict(input=_input(args, kwargs), output=output)
                try:
                    verdict = judging.result(timeout_s)
                finally:
                    judging.cancel()  # nobody waits for it any more, and a judge is paid
            except Exception as error:  # noqa: BLE001  # whatever judging does, the application goes on
                _passes(error)
            return settled(verdict, output)

        @functools.wraps(function)
        async def guarded_async(*args: Any, **kwargs: Any) -> Any:
            output, verdict = await function(*args, **kwargs), None
            try:
                judging = judge.verdict(input=_input(args, kwargs), output=output)
                verdict = await asyncio.wait_for(asyncio.wrap_future(judging), timeout_s)
            except Exception as error:  # noqa: BLE001  # as above
                _passes(error)
            return settled(verdict, output)

        return cast("_Function", guarded_async if inspect.iscoroutinefunction(function) else guarded)

    return wrap


def _passes(error: Exception) -> None:
    log.warning("an output was not judged and passes", extra={"cause": f"{type(error).__name__}: {error}"})


def _input(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function's input: its only argument, else all arguments by name."""
    if len(args) + len(kwargs) == 1:
        return next(iter((*args, *kwargs.values())))
    return {**{str(number): value for number, value in enumerate(args)}, **kwargs}


def _score_current_trace(judge: InlineJudge, verdict: Verdict) -> None:
    from langfuse import get_client  # noqa: PLC0415  # only where it is asked for

    client = get_client()
    for each in evaluations(verdict, judge.rubric, "summary"):
        client.score_current_trace(
            name=each.name, value=cast("Any", each.value), comment=each.comment, data_type=cast("Any", each.data_type),
            metadata=each.metadata,
        )  # fmt: skip
