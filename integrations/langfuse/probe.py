"""Probe: version and features of the Langfuse at an address, found by requests, never by configuration.

The version alone does not decide: a server of version 4 reads one way or another by its write mode. Each question is
one request, and none of them changes anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from sidejudge.scoring.lexical.shown_text import label

from .client import Langfuse
from .errors import LangfuseError, LangfuseErrorKind
from .sending import BATCH, EVENTS, is_too_short, wants

ARRAYS_SINCE: Final = (4, 59)
"""Version from which ``POST scores`` takes an array (what Python SDK 5 requires)."""
ABSENT: Final = (LangfuseErrorKind.NOT_FOUND, LangfuseErrorKind.GONE)
"""Statuses for a read that a server does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LangfuseServer:
    """One Langfuse and the project that the keys belong to.

    ``version`` is None where it names none. ``observations_v2``, ``scores_v3`` and ``legacy_reads`` are the reads that
    it answers, ``takes_events`` whether ``POST ingestion`` is there, ``takes_arrays`` whether ``POST scores`` takes an
    array: as it answered an empty one, and where that says nothing, as its version promises. ``may_write`` is False
    where it refused every body for the rights of the keys, None where it answered neither way.
    """

    base_url: str
    version: str | None
    project_id: str
    project_name: str
    observations_v2: bool
    scores_v3: bool
    legacy_reads: bool
    takes_events: bool = False
    takes_arrays: bool = False
    may_write: bool | None = None

    @property
    def merges_metadata(self) -> bool:
        """Whether a score that is written again keeps the metadata that it had, key by key."""
        release = release_of(self.version)
        return release is None or release < ARRAYS_SINCE

    @property
    def scores_per_request(self) -> int:
        """How many scores a request holds at most."""
        return BATCH if self.takes_arrays else EVENTS if self.takes_events else 1

    def trace_url(self, trace_id: str) -> str:
        """The trace's page."""
        return trace_url(self.base_url, self.project_id, trace_id)


def trace_url(base_url: str, project_id: str, trace_id: str) -> str:
    """The address of a trace's page in the web application of a Langfuse.

    >>> trace_url("https://langfuse.example/", "p1", "36524d221566b94755e27265a6220988")
    'https://langfuse.example/project/p1/traces/36524d221566b94755e27265a6220988'
    """
    return f"{base_url.rstrip('/')}/project/{project_id}/traces/{trace_id}"


async def probe(langfuse: Langfuse) -> LangfuseServer:
    """Detect the server and its features. Raises ``LangfuseError`` when it is unreachable or refuses the keys."""
    server = await _detected(langfuse)
    if server.scores_v3 or server.legacy_reads:
        return server
    return await _detected(langfuse)  # it may have been a proxy's 404 of one moment: scores would be taken for unread


async def _detected(langfuse: Langfuse) -> LangfuseServer:
    version = await version_of(langfuse)
    project_id, name = await project_of(langfuse)
    arrays, allowed = await _array_of_none(langfuse)
    events = await _takes_events(langfuse)
    return LangfuseServer(
        base_url=langfuse.access.base_url,
        version=version,
        project_id=project_id,
        project_name=name,
        observations_v2=await _answers(langfuse, "v2/observations", limit=1, fields="core"),
        scores_v3=await _answers(langfuse, "v3/scores", limit=1),
        legacy_reads=await _answers(langfuse, "traces", limit=1, fields="core"),
        takes_events=bool(events),
        takes_arrays=_promises_arrays(version) if arrays is None else arrays,
        may_write=True if events or allowed else False if events is None or allowed is False else None,
    )


async def version_of(langfuse: Langfuse) -> str | None:
    """The version that the server names; it does so without keys, and while its database is away."""
    try:
        health: object = await langfuse.get("health")
    except LangfuseError as error:
        # A server in trouble names its version in a 503 as well.
        if error.status != 503 or not isinstance(error.body, Mapping) or "status" not in error.body:
            raise
        health = error.body
    version = health.get("version") if isinstance(health, Mapping) else None
    if isinstance(health, Mapping) and "status" in health:
        return label(version) if isinstance(version, str) else None
    raise LangfuseError(LangfuseErrorKind.NOT_LANGFUSE, "its health says nothing that a Langfuse says")


def release_of(version: str | None) -> tuple[int, int] | None:
    """Major and minor number; None for a version that is written otherwise.

    >>> release_of("4.16.0")
    (4, 16)
    """
    match = re.match(r"v?(\d{1,6})\.(\d{1,6})(?:\D|$)", version or "")
    return (int(match[1]), int(match[2])) if match else None


async def project_of(langfuse: Langfuse) -> tuple[str, str]:
    """Id and name of the keys' project. Raises ``LangfuseError``."""
    body = await langfuse.get("projects")
    projects: object = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(projects, list) or not projects or not isinstance(projects[0], Mapping):
        raise LangfuseError(
            LangfuseErrorKind.FORBIDDEN, "the keys belong to no project: use keys of a project, not of an organisation"
        )
    return label(str(projects[0].get("id", "")), 200), label(str(projects[0].get("name", "")))


async def _array_of_none(langfuse: Langfuse) -> tuple[bool | None, bool | None]:
    """Whether an array of scores is taken, and whether these keys may write; None where neither can be known.

    An empty array changes nothing. A server that takes one score says that it wants an object.
    """
    try:
        await langfuse.post("scores", [])
    except LangfuseError as error:
        if error.kind is LangfuseErrorKind.FORBIDDEN:
            return None, False
        if error.kind is LangfuseErrorKind.REFUSED:
            arrays = False if wants(error, "object") else True if is_too_short(error) else None
            return arrays, True if error.status == HTTPStatus.BAD_REQUEST else None
        return None, None  # what is in the way is met again by the scores themselves
    return True, True


def _promises_arrays(version: str | None) -> bool:
    release = release_of(version)
    return release is not None and release >= ARRAYS_SINCE


async def _takes_events(langfuse: Langfuse) -> bool | None:
    """Whether scores may be sent many at a time; None: not with these keys. An empty batch changes nothing."""
    try:
        await langfuse.post("ingestion", {"batch": []})
    except LangfuseError as error:
        if error.kind is LangfuseErrorKind.FORBIDDEN:
            return None
        if error.kind in (*ABSENT, LangfuseErrorKind.REFUSED):
            return False
        raise
    return True


async def _answers(langfuse: Langfuse, path: str, **query: str | int) -> bool:
    try:
        await langfuse.get(path, query)
    except LangfuseError as error:
        if error.kind in ABSENT:
            return False
        raise
    return True
