"""Other monitors of the same traffic: where their names lead, and short messages to them, JSON over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from .addresses import port_of, trusted

if TYPE_CHECKING:
    import httpx

PATH: Final = "/v1/peers"
"""Where monitors take messages from each other, on the OTLP address."""
MOST_BYTES: Final = 1 << 17
"""Bytes of one message, at most."""
_TIMEOUT_S: Final = 4.0
"""Of one message with its answer: the other monitor may send a trace in between."""

Message: TypeAlias = Mapping[str, Any]


async def resolve(address: str) -> dict[str, str]:
    """The addresses behind a configured one, each with the IP address that its requests come from.

    A name over http stands for all its addresses; over https for itself, because a certificate names it. A host with
    addresses of both kinds is one host: then those of IPv4 count. Raises ``OSError`` where the name does not resolve.
    """
    parts, port = urlsplit(address), port_of(address)
    try:
        async with asyncio.timeout(_TIMEOUT_S):  # a name server that is silent is waited for by nobody
            places = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{parts.hostname} is no name of a host") from error
    hosts = {plain(str(place[0])) for *_, place in places}
    found: dict[str, str] = {}
    for host in {each for each in hosts if ":" not in each} or hosts:
        named = f"[{host}]" if ":" in host else host
        found[address if parts.scheme == "https" else f"http://{named}:{port}"] = host
    return found


def plain(host: str) -> str:
    """An IP address as IPv4 where it is one: a socket for both kinds reports 127.0.0.1 as ::ffff:127.0.0.1."""
    return host.removeprefix("::ffff:")


class PeerClient:
    """Sends messages. Monitors are neighbours: no proxy stands between them."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._client: httpx.AsyncClient | None = None

    async def post(self, url: str, message: Message) -> Message | None:
        """The answer of the monitor at an address; None where there is none that can be read."""
        import httpx  # noqa: PLC0415  # only where monitors are configured

        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=_TIMEOUT_S, trust_env=False, verify=trusted(), headers=self._headers
            )
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                response = await self._client.post(url + PATH, json=message)
            if not response.is_success or len(response.content) > MOST_BYTES:
                return None
            return parsed(response.content)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
            return None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def parsed(body: bytes) -> Message | None:
    """A message from its bytes; None if they are not one."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):  # the latter for what is nested too deeply
        return None
    return found if isinstance(found, dict) else None
