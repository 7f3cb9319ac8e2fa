"""Arrived: the scores of an experiment come in, how many of them Langfuse does not show goes out.

The SDK sends in the background and only logs what is refused, and a server may drop what it took: reading is the proof.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from typing import Final, TypeAlias

from sidejudge.integrations.langfuse.annotations import listed_scores
from sidejudge.integrations.langfuse.client import Access, Langfuse
from sidejudge.integrations.langfuse.probe import probe

_CLOCKS_NS: Final = 300 * 10**9
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
        return math.isclose(shown, value, rel_tol=1e-9, abs_tol=1e-12)
    return shown == value
