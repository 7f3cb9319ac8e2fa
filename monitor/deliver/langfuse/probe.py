"""What answers at the address of a Langfuse, and how many traces its budget of requests allows, for ``doctor``."""

from __future__ import annotations

import asyncio

from integrations.langfuse.client import Langfuse
from integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from integrations.langfuse.probe import LangfuseServer, probe
from integrations.langfuse.scores import declared
from integrations.langfuse.sending import EVENTS, traces_per_minute
from monitor.config import Config
from monitor.config.langfuse import LangfuseProject
from monitor.config.rubrics import reached


def most_scores(config: Config) -> int:
    """Scores of a trace that the rubric with the most of them judges."""
    return max((sum(1 for _ in declared(rubric)) for rubric in reached(config).values()), default=1)


def allowed_rate(requests_per_minute: int, scores: int, scores_per_request: int) -> str:
    """How many traces a minute the budget allows, as text."""
    traces = traces_per_minute(requests_per_minute, scores, scores_per_request=scores_per_request)
    return f"{requests_per_minute} requests a minute allow {traces:,.0f} traces a minute at {scores} scores a trace"


def allowed_rates(config: Config) -> str | None:
    """The same for both ways to send scores, before a server was probed; None where no scores are sent."""
    sink = config.sinks.langfuse
    if sink is None:
        return None
    scores = most_scores(config)
    single = traces_per_minute(sink.requests_per_minute, scores, scores_per_request=1)
    many = allowed_rate(sink.requests_per_minute, scores, EVENTS)
    return f"{many} ({single:,.0f} where Langfuse takes single scores only)"


def introduction(key: str, project: LangfuseProject, scores: int | None = None) -> tuple[str, str]:
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
