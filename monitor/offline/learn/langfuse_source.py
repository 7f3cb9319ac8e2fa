"""Cases read from Langfuse: the traces of a stretch of time, at most so many of them, evenly spread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sidejudge.integrations.langfuse.client import Connections
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import probe
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.langfuse import LangfuseProject
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.offline.backfill.job import evenly
from sidejudge.monitor.offline.backfill.listing import MOST_ATTEMPTS, Reader, UnreadError, list_traces
from sidejudge.monitor.offline.backfill.run import case_of, sampler_of
from sidejudge.scoring.case.case import Case

_AROUND_NS: Final = 30 * 60 * 10**9
"""How far from the listed times rows of a trace are looked for."""


async def langfuse_cases(
    config: Config,
    source: LangfuseProject,
    window: Window,
    wanted: MatchSection,
    *,
    most: int,
    complain: Callable[[str], None],
) -> list[Case]:
    """The cases of the traces that began in the window. Raises ``LangfuseError``.

    Args:
        config: How traces are read; its sampling is left aside.
        source: The project.
        window: First and last start time.
        wanted: A condition; what the listing can decide of it is applied, the rest is left to the caller.
        most: Traces that are read, each with a request or more.
        complain: Gets one line for each trace that cannot be read.
    """
    sampling = config.sampling.model_copy(update={"rate": 1.0, "rules": ()})
    config = config.model_copy(update={"sampling": sampling, "sessions": None})
    connections = Connections((source.access,))
    langfuse = connections.to(source.access)
    try:
        server = await probe(langfuse)
        reader = Reader(langfuse=langfuse, server=server, window=window, around_ns=_AROUND_NS)
        sampler = sampler_of(config, wanted)
        found = await reader.patiently(
            lambda: list_traces(langfuse, server, window, sampler, wanted), most=MOST_ATTEMPTS
        )
        cases = []
        for sighting in evenly(found.drawn, most):
            try:
                spans = await reader.spans(sighting)
            except UnreadError as error:
                complain(f"a trace cannot be read: {error}")
                continue
            cases.append(case_of(config, spans))
        return cases
    finally:
        await connections.close()
