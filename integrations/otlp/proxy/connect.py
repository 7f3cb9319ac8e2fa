"""Connect to the address of a host that answers first (RFC 8305, "happy eyeballs").

A host often has an address that leads nowhere (IPv6 without a route, a replica that is gone). The event loop by itself
tries them one after the other, each until the system's own timeout.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

_Address: TypeAlias = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
_NEXT_S: Final = 0.25
"""How long an address may take before the next one is tried beside it."""


async def connected(host: str, port: int) -> socket.socket:
    """Return a connected socket. Raises the first ``OSError`` of all addresses if none answers."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    waiting = deque(_interleaved(found))
    trying: set[asyncio.Task[socket.socket]] = set()
    refused: list[BaseException] = []
    won: asyncio.Task[socket.socket] | None = None
    try:
        while won is None and (waiting or trying):
            if waiting:
                trying.add(asyncio.create_task(_try(*waiting.popleft())))
            done, _ = await asyncio.wait(
                trying, timeout=_NEXT_S if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if error is None:
                    won = task
                else:
                    trying.discard(task)
                    refused.append(error)
    finally:
        for task in trying:
            if not task.cancel() and task is not won and task.exception() is None:
                task.result().close()
    if won is None:
        raise refused[0]
    return won.result()


def _interleaved(found: Sequence[tuple[int, int, int, str, _Address]]) -> list[tuple[int, int, _Address]]:
    """Order addresses by families in turns, beginning with the one that the system prefers."""
    preferred = [(family, proto, to) for family, _, proto, _, to in found if family == found[0][0]]
    others = [(family, proto, to) for family, _, proto, _, to in found if family != found[0][0]]
    return [each for pair in zip_longest(preferred, others) for each in pair if each is not None]


async def _try(family: int, proto: int, to: _Address) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM, proto)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(made, to)
    except BaseException:
        made.close()
        raise
    return made
