"""What answers at the address of a Langfuse, and how many traces its budget of requests allows, for ``doctor``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from integrations.langfuse.client import Langfuse
from integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from integrations.langfuse.probe import LangfuseServer, probe
from integrations.langfuse.scores import declared
from integrations.langfuse.sending import EVENTS, traces_per_minute
from monitor.config import Config
from monitor.config.langfuse import LangfuseProject
from monitor.config.rubrics import reached

_PASS_AND_SCORE: Final = 2


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """How many scores a trace has, by the rubric with the most of them: where it passes, and at most."""

    passing: int
    most: int


def score_counts(config: Config) -> ScoreCounts:
    """The scores of a trace under ``sinks.langfuse.scores``."""
    sink = config.sinks.langfuse
    most = max((sum(1 for _ in declared(rubric)) for rubric in reached(config).values()), default=1)
    everything = sink is not None and sink.scores == "all"
    return ScoreCounts(passing=most if everything else min(_PASS_AND_SCORE, most), most=most)


def allowed_rate(requests_per_minute: int, scores: ScoreCounts, scores_per_request: int) -> str:
    """How many traces a minute the budget allows, as text."""

    def traces(count: int) -> float:
        return traces_per_minute(requests_per_minute, count, scores_per_request=scores_per_request)

    stated = f"{requests_per_minute} requests a minute allow {traces(scores.passing):,.0f} traces a minute"
    if scores.passing == scores.most:
        return f"{stated} at {scores.most} scores a trace"
    return (
        f"{stated} that pass ({scores.passing} scores each), {traces(scores.most):,.0f} that fail "
        f"(up to {scores.most} scores)"
    )


def allowed_rates(config: Config) -> str | None:
    """The same for both ways to send scores, before a server was probed; None where no scores are sent."""
    sink = config.sinks.langfuse
    if sink is None:
        return None
    scores = score_counts(config)
    many = allowed_rate(sink.requests_per_minute, scores, EVENTS)
    return f"{many}; where Langfuse takes single scores only, {allowed_rate(sink.requests_per_minute, scores, 1)}"


def introduction(key: str, project: LangfuseProject, scores: ScoreCounts | None = None) -> tuple[str, str]:
    """Ask a Langfuse what it is.

    Args:
        key: the section of the configuration that names it.
        project: that section.
        scores: how many scores a trace has; None where none are sent there.

    Returns:
        What was found, and what to do about it: empty when all is well.
    """
    try:
        server = asyncio.run(_ask(project))
    except LangfuseError as error:
        return f"{project.base_url}: {error}", _remedy(key, error)
    reads = "v2 observations" if server.observations_v2 else "legacy reads" if server.legacy_reads else "no reads"
    writes = f"up to {server.scores_per_request} scores a request" if server.scores_per_request > 1 else "single scores"
    version = server.version or "of an unnamed version"
    found = f"Langfuse {version} at {project.base_url}, project {server.project_name}; {reads}, {writes}"
    if scores is not None:
        found += f"; {allowed_rate(project.requests_per_minute, scores, server.scores_per_request)}"
    return found, ""


async def _ask(project: LangfuseProject) -> LangfuseServer:
    async with Langfuse(project.access) as langfuse:
        return await probe(langfuse)


def _remedy(key: str, error: LangfuseError) -> str:
    if error.kind in (LangfuseErrorKind.KEYS_REFUSED, LangfuseErrorKind.FORBIDDEN):
        return f"check {key}.public_key and {key}.secret_key, and that base_url is where they belong"
    if error.kind in (LangfuseErrorKind.UNREACHABLE, LangfuseErrorKind.TIMEOUT):
        return f"check {key}.base_url, and that this machine may reach it"
    if error.kind in (LangfuseErrorKind.SERVER_ERROR, LangfuseErrorKind.RATE_LIMITED):
        return "wait, or ask whoever runs it: nothing here is wrong, and what is to be sent is kept"
    return f"check {key}.base_url: it is the address of Langfuse's web page, without a path"
