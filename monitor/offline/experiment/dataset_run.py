"""Dataset run: an agent is put every item of a dataset of Langfuse, as an experiment of its SDK, and judged.

In the end the scores are read back, and those that Langfuse does not show are counted. Nothing else is proof: the SDK
sends in the background and only logs refusals, and a server may drop accepted scores.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from sidejudge.integrations.agents import Request
from sidejudge.integrations.langfuse.annotations import listed_scores
from sidejudge.integrations.langfuse.client import Access, Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.existing_scores import near
from sidejudge.integrations.langfuse.probe import ARRAYS_SINCE, probe, release_of, version_of
from sidejudge.monitor.config import Config
from sidejudge.monitor.offline.test.run import Agent
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.time_units import MINUTE_NS
from sidejudge.scoring.verdict.score import pass_name

from .evaluators import RubricEvaluator, RunAggregate
from .inline import InlineJudge

_CLOCKS_NS: Final = 5 * MINUTE_NS
"""How far the server's clock may be from ours."""
_FIRST_S: Final = 0.5
"""Until the second look; each further one comes after twice as long."""

Sent: TypeAlias = Mapping[tuple[str, str], float | str]
"""Values by id of the trace and name of the score."""


async def not_arrived(access: Access, sent: Sent, *, since_ns: int, within_s: float) -> int:
    """How many of these scores are not shown with their values after ``within_s`` seconds. Raises ``LangfuseError``."""
    ends_s, pause_s = time.monotonic() + within_s, _FIRST_S
    async with Langfuse(access) as langfuse:
        v3 = (await probe(langfuse)).scores_v3
        while True:
            between = (since_ns - _CLOCKS_NS, time.time_ns() + _CLOCKS_NS)
            shown: dict[tuple[str, str], float | str] = {}
            async for each in listed_scores(langfuse, since_ns=between[0], until_ns=between[1], v3=v3):
                shown.setdefault((each.subject, each.name), each.value)
            missing = sum(not _same(shown.get(key), value) for key, value in sent.items())
            if not missing or time.monotonic() + pause_s > ends_s:
                return missing
            await asyncio.sleep(pause_s)
            pause_s *= 2


def _same(shown: float | str | None, value: float | str) -> bool:
    if isinstance(shown, int | float) and isinstance(value, int | float):
        return near(shown, value)
    return shown == value


ARRIVES_S: Final = 60.0
"""How long after a run its scores may take to be shown."""
_SENDS_ARRAYS: Final = (5, 0)
"""Version from which the SDK sends scores in arrays."""


class NoDatasetError(SidejudgeError):
    """The dataset cannot be read, because the server cannot be asked or for itself, or has no items."""


class UnfitSdkError(SidejudgeError):
    """The server takes no scores as the installed SDK sends them: a run would be lost."""


def check_sdk(access: Access, installed: str | None = None) -> None:
    """Check that the scores of a run would arrive; a server that names no version passes.

    Args:
        access: The project.
        installed: Version of the SDK; None: the installed one.

    Raises:
        NoDatasetError: The server cannot be asked.
        UnfitSdkError: It takes no scores as the SDK sends them.
    """
    from importlib.metadata import version as version_of_package  # noqa: PLC0415  # only where a run is asked for

    async def ask() -> str | None:
        async with Langfuse(access) as langfuse:
            return await version_of(langfuse)

    sdk = release_of(installed or version_of_package("langfuse"))
    try:
        found = asyncio.run(ask())
    except LangfuseError as error:
        raise NoDatasetError(f"{access.base_url}: {error}") from error
    server = release_of(found)
    if sdk is not None and server is not None and sdk >= _SENDS_ARRAYS and server < ARRAYS_SINCE:
        raise UnfitSdkError(
            f"Langfuse {found} takes no scores of its SDK {installed or version_of_package('langfuse')}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetTally:
    """The verdicts of one rubric over the items. ``lower`` and ``upper`` are 95 % bounds of the pass rate."""

    passed: int
    failed: int
    not_judged: int
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRun:
    """The result of a run. ``url`` is its page, None where the project is unknown.

    Of its ``scores``, those on items, ``missing`` are not shown by Langfuse; None: it could not be read (``unread``).
    """

    items: int
    url: str | None
    scores: int = 0
    missing: int | None = 0
    unread: str = ""
    rubrics: Mapping[str, DatasetTally] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every item passed under every rubric, and every score of them is known to be in Langfuse."""
        return self.missing == 0 and all(each.passed == self.items for each in self.rubrics.values())


def run_dataset(
    access: Access,
    dataset: str,
    *,
    agent: Callable[[], Agent],
    rubrics: Sequence[str],
    config: Config,
    name: str,
    concurrency: int,
    timeout_s: float,
) -> DatasetRun:
    """Run the experiment and wait until the SDK has sent everything.

    Args:
        access: The project that holds the dataset.
        dataset: Its name.
        agent: Makes the agent, once for each item.
        rubrics: Names of rubrics.
        config: Where rubrics and judge are configured.
        name: The experiment's name.
        concurrency: Items at a time.
        timeout_s: The longest that the agent may take for one, in s.

    Raises:
        NoDatasetError: The dataset cannot be read, or has no items.
        UnfitSdkError: The server takes no scores as the installed SDK sends them.
        ValueError: There is no such rubric.
    """
    from langfuse import Langfuse as Sdk  # noqa: PLC0415  # only where it is asked for
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # likewise

    check_sdk(access)
    judges = [InlineJudge(rubric, config) for rubric in dict.fromkeys(rubrics)]
    # A provider of its own: the SDK would else make its own the one of the whole process.
    sdk = Sdk(
        public_key=access.public_key, secret_key=access.secret_key, base_url=access.base_url,
        timeout=round(access.timeout_s), tracer_provider=TracerProvider(),
    )  # fmt: skip
    try:
        found = sdk.get_dataset(dataset)
    except Exception as error:
        raise NoDatasetError(f"dataset {dataset!r} cannot be read: {_stated(error)}") from error
    if not found.items:
        raise NoDatasetError(f"dataset {dataset!r} has no items")

    async def task(*, item: Any, **_: object) -> object:
        metadata = item.metadata if isinstance(item.metadata, dict) else {}
        async with asyncio.timeout(timeout_s), agent() as requested:
            reply = await requested.ask(Request(input=item.input, test_id=str(item.id), metadata=metadata))
        return reply.stated

    began_ns = time.time_ns()
    result = found.run_experiment(
        name=name, task=task, max_concurrency=concurrency,
        evaluators=[RubricEvaluator(judge, "summary") for judge in judges],
        run_evaluators=[RunAggregate(judge.rubric) for judge in judges],
    )  # fmt: skip
    sdk.flush()
    tallies = {judge.rubric.id: _tally(judge.rubric.id, result, len(found.items)) for judge in judges}
    sent: dict[tuple[str, str], float | str] = {
        (str(item.trace_id), each.name): each.value
        for item in result.item_results if item.trace_id for each in item.evaluations
    }  # fmt: skip
    missing, unread = _read_back(access, sent, began_ns)
    return DatasetRun(
        items=len(found.items), url=_url(result), scores=len(sent), missing=missing, unread=unread, rubrics=tallies
    )


def _read_back(access: Access, sent: Sent, began_ns: int) -> tuple[int | None, str]:
    """How many scores are not there; None, and why, where that cannot be known."""
    try:
        return asyncio.run(not_arrived(access, sent, since_ns=began_ns, within_s=ARRIVES_S)), ""
    except LangfuseError as error:
        return None, str(error)


def _url(result: Any) -> str | None:
    """The page of the run; SDK 4 names it otherwise."""
    return getattr(result, "experiment_url", None) or getattr(result, "dataset_run_url", None)


def _tally(rubric: str, result: Any, items: int) -> DatasetTally:
    passes = [
        bool(each.value) for item in result.item_results for each in item.evaluations if each.name == pass_name(rubric)
    ]
    rate = next((each for each in result.run_evaluations if each.name == f"{rubric}_pass_rate"), None)
    bounds = rate.metadata if rate is not None and isinstance(rate.metadata, Mapping) else {}
    return DatasetTally(
        passed=sum(passes), failed=len(passes) - sum(passes), not_judged=items - len(passes),
        lower=bounds.get("lower"), upper=bounds.get("upper"),
    )  # fmt: skip


def _stated(error: Exception) -> str:
    body = getattr(error, "body", None)
    stated = body.get("message") if isinstance(body, Mapping) else None
    return str(stated) if stated else type(error).__name__
