"""The server at the address of a Langfuse, and the number of traces that its request budget allows, for ``doctor``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.langfuse.annotations import queues_named
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.configs import ScoreConfigs
from sidejudge.integrations.langfuse.datasets import dataset_exists
from sidejudge.integrations.langfuse.declared_scores import declared, names_of
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.probe import LangfuseServer, probe
from sidejudge.integrations.langfuse.sending import BATCH, EVENTS, traces_per_minute
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.langfuse import FailureDatasetSection, LangfuseProject, LangfuseSink
from sidejudge.monitor.config.rubrics import reached

_SHOWN: Final = 5
_ARCHIVE: Final = "archive it in Langfuse (settings, scores): its type cannot be changed, and a new one is made"
_DESCRIBE: Final = "nothing, if people wrote it; to have ours, archive them in Langfuse, and new ones are made"
MOST_SKEW_S: Final = 30.0
"""How far the clocks may differ: less than the time that is read again."""


def scores_per_trace(config: Config) -> int:
    """The most scores that a verdict has under ``sinks.langfuse.scores``, single steps left out."""
    return max((len(names) for names in written_names(config).values()), default=1)


def written_names(config: Config) -> dict[str, list[str]]:
    """The names of the scores that are written of every verdict, by rubric; none where no scores are sent."""
    sink = config.sinks.langfuse
    if sink is None:
        return {}
    return {
        name: [each.name for each in declared(rubric) if each.name in names_of(rubric, sink.scores)]
        for name, rubric in reached(config).items()
    }


def _traces(requests_per_minute: int, scores: int, scores_per_request: int) -> str:
    return f"{traces_per_minute(requests_per_minute, scores, scores_per_request=scores_per_request):,.0f}"


def allowed_rates(config: Config) -> str | None:
    """How many traces a minute the budget allows by each way to send scores; None where no scores are sent."""
    sink = config.sinks.langfuse
    if sink is None:
        return None
    most, scores = sink.requests_per_minute, scores_per_trace(config)
    arrays, batches, single = (_traces(most, scores, each) for each in (BATCH, EVENTS, 1))
    return (
        f"{most} requests a minute allow {arrays} traces a minute at {scores} scores a trace in arrays of {BATCH} "
        f"(Langfuse from 4.59), {batches} in batches of {EVENTS} (before); where neither is taken {single}, one score "
        "a request, with the time of delivery as its time"
    )


async def check_server(key: str, project: LangfuseProject, scores: int | None = None) -> NamedPart:
    """Ask a Langfuse for its version and what it can do.

    Args:
        key: the section of the configuration that names it.
        project: that section.
        scores: how many scores a trace has; None where none are sent there.

    Returns:
        What was found, and what to do about it: empty when all is well.
    """
    try:
        async with Langfuse(project.access) as langfuse:
            server = await probe(langfuse)
    except LangfuseError as error:
        return NamedPart(key, f"{project.base_url}: {error}", _remedy(key, error))
    reads = "v2 observations" if server.observations_v2 else "legacy reads" if server.legacy_reads else "no reads"
    version = server.version or "of an unnamed version"
    found = f"Langfuse {version} at {project.base_url}, project {server.project_name}; {reads}, {_way(server)}"
    if scores is None:
        return NamedPart(key, found)
    rate = _traces(project.requests_per_minute, scores, server.scores_per_request)
    found += (
        f"; {project.requests_per_minute} requests a minute allow {rate} traces a minute at {scores} scores a trace"
    )
    if server.may_write is False:
        return NamedPart(key, f"{found}; these keys may not write scores (HTTP 403)", _RIGHTS)
    if server.may_write is None:
        found += "; whether these keys may write was not to be found without writing"
    return NamedPart(key, found, _SINGLE if server.scores_per_request == 1 else "", works=True)


def _way(server: LangfuseServer) -> str:
    if server.takes_arrays:
        return f"up to {BATCH} scores a request (arrays at POST scores)"
    return f"up to {EVENTS} scores a request (POST ingestion)" if server.takes_events else "single scores"


_RIGHTS: Final = "use keys that may write, and see in the project's settings that ingestion is not suspended"
_SINGLE: Final = (
    "upgrade Langfuse to 4.59 or later, or let POST /api/public/ingestion through: one score a request allows a "
    "fraction of the traces, and each bears the time of its delivery, not that of its trace"
)


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A finding about one thing that the configuration names: a Langfuse, a dataset, a queue, score configs, the clock.

    ``remedy`` is empty where all is well. ``works``: it does its work even where a remedy is named.
    """

    subject: str
    found: str
    remedy: str = ""
    works: bool = False


async def named_parts(config: Config) -> list[NamedPart]:
    """Whether the named datasets and queue are there, the score configs are ours, and the clocks agree.

    Where Langfuse cannot be asked that is one line; ``check_server`` has the remedy.
    """
    try:
        return await _named_parts(config)
    except LangfuseError as error:
        return [NamedPart("names in Langfuse", f"not examined: {error}", "mend the connection first")]


async def _named_parts(config: Config) -> list[NamedPart]:
    found: list[NamedPart] = []
    datasets = list(dict.fromkeys(each.langfuse_dataset for each in config.references if each.langfuse_dataset))
    if config.langfuse is not None:
        async with Langfuse(config.langfuse.access) as langfuse:
            found.append(_clock(await langfuse.clock_skew_s()))
            for name in datasets:
                there = await dataset_exists(langfuse, name)
                remedy = "" if there else "correct references[].langfuse_dataset, or make the dataset"
                found.append(NamedPart(f"dataset {name}", "is there" if there else "is not in the project", remedy))
    sink = config.sinks.langfuse
    if sink is not None:
        found += await _score_configs(sink, config)
    if sink is not None and sink.failure_dataset is not None:
        found.append(await _failure_dataset(sink, sink.failure_dataset))
    if sink is not None and sink.annotation_queue is not None:
        async with Langfuse(sink.access) as langfuse:
            name, count = sink.annotation_queue.name, len(await queues_named(langfuse, sink.annotation_queue.name))
        stated = (
            "is there" if count == 1 else "is not in the project" if not count else f"there are {count} of this name"
        )
        remedy = "" if count == 1 else "sinks.langfuse.annotation_queue.name has to name one queue of the project"
        found.append(NamedPart(f"annotation queue {name}", stated, remedy))
    return found


async def _score_configs(sink: LangfuseSink, config: Config) -> list[NamedPart]:
    """Configs that an earlier version made, or that somebody changed. Langfuse lets nobody change the type of one."""
    known = [each for rubric in reached(config).values() for each in declared(rubric)]
    try:
        async with Langfuse(sink.access) as langfuse:
            outdated = await ScoreConfigs(langfuse, known).outdated()
    except LangfuseError as error:
        if error.kind.transient:
            raise
        return []  # scores go without configs where these cannot be listed; ``check_server`` reports wrong keys
    parts = [
        NamedPart(f"score config {each.name}", f"{each.why}; scores do not name it", _ARCHIVE, works=True)
        for each in outdated
        if each.unused
    ]
    described = [each.name for each in outdated if not each.unused]
    if described:
        names = f"{', '.join(described[:_SHOWN])}{', …' if len(described) > _SHOWN else ''}"
        stated = f"{len(described)} with another description than ours, which is left as it is: {names}"
        parts.append(NamedPart("score configs", stated, _DESCRIBE, works=True))
    return parts


async def _failure_dataset(sink: LangfuseSink, section: FailureDatasetSection) -> NamedPart:
    async with Langfuse(sink.access) as langfuse:
        there = await dataset_exists(langfuse, section.name)
    subject = f"dataset {section.name}"
    if there or section.create:
        return NamedPart(subject, "is there" if there else "is not in the project; it is made with the first start")
    remedy = "make the dataset, or set sinks.langfuse.failure_dataset.create: true"
    return NamedPart(subject, "is not in the project", remedy)


def _clock(skew_s: float | None) -> NamedPart:
    if skew_s is None:
        return NamedPart("clock of Langfuse", "not shown by the server")
    if abs(skew_s) <= MOST_SKEW_S:
        return NamedPart("clock of Langfuse", "agrees with ours")
    ahead = "ahead of" if skew_s > 0 else "behind"
    return NamedPart(
        "clock of Langfuse", f"{abs(skew_s):,.0f} s {ahead} ours",
        "set both clocks: what is new is listed by time, and may be missed",
    )  # fmt: skip


def _remedy(key: str, error: LangfuseError) -> str:
    if error.kind in (LangfuseErrorKind.KEYS_REFUSED, LangfuseErrorKind.FORBIDDEN):
        return f"check {key}.public_key and {key}.secret_key, and that base_url is where they belong"
    if error.kind in (LangfuseErrorKind.UNREACHABLE, LangfuseErrorKind.TIMEOUT):
        return f"check {key}.base_url, and that this machine may reach it"
    if error.kind in (LangfuseErrorKind.SERVER_ERROR, LangfuseErrorKind.RATE_LIMITED):
        return "wait, or ask whoever runs it: nothing here is wrong, and what is to be sent is kept"
    return f"check {key}.base_url: it is the address of Langfuse's web page, without a path"
