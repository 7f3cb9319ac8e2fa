"""Introduction: who answers at the address of a Langfuse, told to a person who examines a configuration."""

from __future__ import annotations

import asyncio

from integrations.langfuse.client import Langfuse
from integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from integrations.langfuse.probe import LangfuseServer, probe
from monitor.config.langfuse import LangfuseProject


def introduction(key: str, project: LangfuseProject) -> tuple[str, str]:
    """(what was found, what to do about it, empty when all is well). ``key`` is the section that is examined."""
    try:
        server = asyncio.run(_ask(project))
    except LangfuseError as error:
        return f"{project.base_url}: {error}", _remedy(key, error)
    reads = "v2 observations" if server.observations_v2 else "legacy reads" if server.legacy_reads else "no reads"
    writes = "arrays of scores" if server.takes_arrays else "single scores"
    version = server.version or "of an unnamed version"
    return f"Langfuse {version} at {project.base_url}, project {server.project_name}; {reads}, {writes}", ""


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
