"""Dataset run: an agent is put every item of a dataset of Langfuse, as an experiment of its SDK, and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from integrations.agents.reply import Request
from integrations.langfuse.client import Access
from monitor.config import Config
from monitor.offline.test.run import Agent
from scoring.errors import SidejudgeError
from scoring.verdict.score_name import pass_name

from .evaluators import RubricEvaluator, RunAggregate
from .inline import InlineJudge


class NoDatasetError(SidejudgeError):
    """The dataset cannot be read, or has no items; the message states why."""


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
    """What came of a run. ``url`` is its page, None where the project could not be asked for."""

    items: int
    url: str | None
    rubrics: Mapping[str, DatasetTally] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every item passed under every rubric."""
        return all(each.passed == self.items for each in self.rubrics.values())


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
        ValueError: There is no such rubric.
    """
    import asyncio  # noqa: PLC0415  # with the SDK, which is slow to import

    from langfuse import Langfuse  # noqa: PLC0415  # only where it is asked for
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # likewise

    judges = [InlineJudge(rubric, config) for rubric in rubrics]
    # A provider of its own: the SDK would else make its own the one of the whole process.
    sdk = Langfuse(
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

    result = found.run_experiment(
        name=name, task=task, max_concurrency=concurrency,
        evaluators=[RubricEvaluator(judge, "summary") for judge in judges],
        run_evaluators=[RunAggregate(judge.rubric) for judge in judges],
    )  # fmt: skip
    sdk.flush()
    tallies = {judge.rubric.id: _tally(judge.rubric.id, result, len(found.items)) for judge in judges}
    return DatasetRun(items=len(found.items), url=result.experiment_url, rubrics=tallies)


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
