"""Peers: this monitor greets the others, asks them about traces that may lack spans, and answers them."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final

from sidejudge.integrations.addresses import port_of, why_not
from sidejudge.integrations.otlp.server.body import Disconnected, Receive, next_part
from sidejudge.integrations.otlp.server.receiver import AsgiApp, OtlpReceiver, Scope, peer_of
from sidejudge.integrations.otlp.server.response import JSON, Refusal, Send, answer, refuse
from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin, earliest_start
from sidejudge.integrations.otlp.wire.handover import HandoverKeys
from sidejudge.integrations.peers import MOST_BYTES, Message, PeerClient, parsed, plain, resolve
from sidejudge.integrations.store.sqlite import Store, StoreError
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.fleet import PeersSection
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.peers.joining import Holding, Joining
from sidejudge.monitor.peers.peers import Peer, Peers
from sidejudge.scoring.status.snapshots import Anomaly, AnomalyKind

from .handover import Handover, by_trace, handed_over

_log = logging.getLogger("sidejudge.joining")

_TICK_S: Final = 0.5
"""How often what waits is asked about."""
_RECENT_S: Final = 600.0
"""For how long an address is known that a name led to: one that ends may be resolved no more when it reports that."""
_SEND_S: Final = 3.0
"""How long sending traces to another monitor may take."""
_STRANGER: Final = Refusal(403, "peers.addresses of this monitor do not lead to the sender")
_KEY_LENGTH: Final = 64
_LEAVES: Final = "leaves"
_LEFT: Final = "left"


def drawn_by(hash_key: bytes) -> str:
    """A digest that is equal where traces are drawn by the same key; it does not lead to the key."""
    return blake2b(hash_key, digest_size=8, person=b"sidejudge.peers").hexdigest()


class PeerExchange:
    """The part of a monitor that knows the others. ``joining`` decides; this sends, listens and reads the store.

    ``section`` is that of ``config``. ``end`` commits closings that are given up.
    """

    def __init__(
        self, section: PeersSection, config: Config, *, store: Store, assembler: Assembler, keys: HandoverKeys,
        end: Callable[[Sequence[Closing]], Awaitable[None]], clock_ns: Callable[[], int], wake: Callable[[], None],
    ) -> None:  # fmt: skip
        self._section, self._store, self._end, self._hash_key = section, store, end, config.sampling.hash_key
        self._keys, self._clock, assembly = keys, clock_ns, config.assembly
        self._client = PeerClient(section.sent_headers)
        self._room = store.kept.room("peers")
        self._run = secrets.token_hex(8)
        self._drawn_by: dict[str, str] = {}
        self._led: dict[str, dict[str, str]] = {}
        self._hosts: dict[str, str] = {}
        self._recent: dict[str, tuple[str, float]] = {}
        self._port: int | None = None
        self._trouble: str | None = None
        self._task: asyncio.Task[None] | None = None
        self.joining = Joining(
            name=self._room.all().get("name") or secrets.token_hex(8),
            assembler=assembler, peers=Peers(settle_ns=section.settle.ns, now_ns=clock_ns()), transport=self,
            earliest=self._earliest, wait_ns=section.wait.ns, most=assembly.max_waiting_traces, clock_ns=clock_ns,
            longest_ns=max(assembly.root_wait.ns, assembly.deadline.ns) + section.settle.ns, wake=wake,
        )  # fmt: skip

    async def start(self, otlp: str) -> None:
        """Begin to greet and to ask; ``otlp`` is the address that this monitor listens on."""
        self._port = port_of(otlp)
        with suppress(StoreError):  # then the next start has another name, and is taken for another monitor
            await self._room.change({"name": self.joining.name})
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._client.close()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        greet_s = loop.time()
        while True:
            try:
                if loop.time() >= greet_s:
                    greet_s = loop.time() + self._section.every.seconds  # first: what fails is not tried at once again
                    await self.greet()
                await self.joining.round()
            except StoreError as error:
                _log.warning("could not look for spans of other monitors", extra={"cause": str(error)})
            except Exception:  # noqa: BLE001  # without this loop what waits would wait for ever
                _log.exception("could not ask other monitors")
            rest_s = _TICK_S if self.joining.waiting else greet_s - loop.time()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.joining.more.wait(), max(0.01, rest_s))

    async def greet(self) -> None:
        """Find out who is there."""
        await self._resolve()
        urls = list(self._hosts)
        answers = await asyncio.gather(*(self._client.post(url, self._sent()) for url in urls))
        names = {
            url: (str(found["name"]), str(found["run"]))
            for url, found in zip(urls, answers, strict=True)
            if found is not None and "name" in found and "run" in found
        }
        others = {url: found for url, found in names.items() if found[0] != self.joining.name}
        silent = [url for url, found in zip(urls, answers, strict=True) if found is None]
        self.joining.peers.found(others, self._clock(), listed=len(others) < len(names), silent=silent)

    async def _resolve(self) -> None:
        """An address that does not resolve keeps what it led to before, and the others lead to theirs."""
        addresses = self._section.addresses
        answers = await asyncio.gather(*(resolve(each) for each in addresses), return_exceptions=True)
        trouble = None
        for address, found in zip(addresses, answers, strict=True):
            if isinstance(found, OSError):
                trouble = why_not(found)
            elif isinstance(found, BaseException):
                raise found
            else:
                self._led[address] = found
        if trouble is not None and self._trouble is None:
            _log.warning("peers.addresses do not resolve", extra={"cause": trouble})
        self._trouble = trouble
        self._hosts = {url: host for found in self._led.values() for url, host in found.items()}
        now_s = asyncio.get_running_loop().time()
        self._recent = {
            url: (host, at_s) for url, (host, at_s) in self._recent.items() if at_s > now_s - _RECENT_S
        } | {url: (host, now_s) for url, host in self._hosts.items()}  # fmt: skip
        self._drawn_by = {url: by for url, by in self._drawn_by.items() if url in self._recent}

    async def leaves(self, *, hands_over: bool) -> None:
        """The process is going to end: the others know before traces go to them."""
        self.joining.end(hands_over=hands_over)
        await self._announce(_LEAVES)

    async def left(self) -> None:
        """Everything was passed on: the others need not ask this monitor."""
        await self._announce(_LEFT)

    async def _announce(self, state: str) -> None:
        await asyncio.gather(*(self._client.post(url, self._sent(state=state)) for url in self._hosts))

    def _message(self, **more: object) -> dict[str, object]:
        return {"name": self.joining.name, "run": self._run, "port": self._port, **more}

    def _sent(self, **more: object) -> dict[str, object]:
        """To a configured address: a digest of the sampling key, the own key for handovers if none is shared."""
        more["drawn_by"] = drawn_by(self._hash_key)
        return self._message(**more) if self._keys.is_shared else self._message(key=self._keys.own, **more)

    def anomalies(self) -> Iterator[Anomaly]:
        """That other monitors draw traces by another key: of a trace that comes to both, each has another share."""
        known = {url: by for url, by in self._drawn_by.items() if url in self._hosts}
        others = sorted(self._hosts[url] for url, by in known.items() if by != drawn_by(self._hash_key))
        if others:
            yield Anomaly(
                kind=AnomalyKind.SKEWED_SAMPLING, service=None,
                cause=f"{len(others)} of {len(known)} peers draw traces by another sampling.randomness or "
                f"sampling.randomness_key than this monitor, the first at {others[0]}: their probabilities do not fit",
                remedy="give all monitors that spans of one trace may come to the same of both",
            )  # fmt: skip

    # The way to others, as ``Joining`` sees it.

    async def ask(self, peer: Peer, traces: Mapping[bytes, bool]) -> Mapping[bytes, Holding] | None:
        wanted = {trace_id.hex(): rooted for trace_id, rooted in traces.items()}
        found = await self._client.post(peer.url, self._sent(traces=wanted))
        if found is None or found.get("name") != peer.name or not isinstance(found.get("traces"), dict):
            return None
        words = {word.value for word in Holding}
        return {
            bytes.fromhex(trace_id): Holding(word)
            for trace_id, word in found["traces"].items()
            if trace_id in wanted and isinstance(word, str) and word in words
        }

    async def send(self, peer: Peer, trace_ids: Sequence[bytes]) -> set[bytes]:
        taken: set[bytes] = set()

        async def took(closings: Sequence[Closing]) -> None:
            taken.update(closing.trace_id for closing in closings)

        await self._client.post(peer.url, self._sent())  # it may have been started anew, and know no key
        handover = Handover(peer.url, self._section.sent_headers, _SEND_S, took, self._keys, hash_key=self._hash_key)
        await handover.run(by_trace(self._store.recover(trace_ids)), asyncio.get_running_loop().time())
        return taken

    async def end(self, trace_ids: Sequence[bytes]) -> None:
        await self._end([handed_over(trace_id, ChunkOrigin(None, None, 0, self._hash_key)) for trace_id in trace_ids])

    async def _earliest(self, trace_ids: Sequence[bytes]) -> Mapping[bytes, int | None]:
        return await asyncio.to_thread(self._read_earliest, trace_ids)

    def _read_earliest(self, trace_ids: Sequence[bytes]) -> dict[bytes, int | None]:
        return {
            trace_id: min(filter(None, map(earliest_start, self._store.chunks(trace_id))), default=None)
            for trace_id in trace_ids
        }

    # What others ask.

    def app(self, receiver: OtlpReceiver) -> AsgiApp:
        """The ASGI application of ``/v1/peers``, for those whom the receiver admits."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                receiver.admit(scope, dict(scope["headers"]))
                message = parsed(await _body(receive)) if scope["method"] == "POST" else None
                found = await self._answer(message, plain(peer_of(scope)))
            except Refusal as refusal:
                await refuse(send, refusal, JSON)
                return
            await answer(send, 200, JSON, json.dumps(found).encode())

        return app

    async def _answer(self, message: Message | None, host: str) -> dict[str, object]:
        if message is None or not isinstance(message.get("name"), str):
            raise Refusal(400, "this is no message of a monitor")
        state, wanted, key = message.get("state"), message.get("traces"), message.get("key")
        url = self._url_of(message, host, self._led_to)
        if isinstance(key, str) and len(key) <= _KEY_LENGTH and url is not None:
            self._keys.learn(key)
        if isinstance(by := message.get("drawn_by"), str) and url is not None and message["name"] != self.joining.name:
            self._drawn_by[url] = by[:_KEY_LENGTH]
        if state is not None:
            self._take_leave(message, host)
        if not isinstance(wanted, dict):
            return self._message()  # a greeting, which anybody may send
        asker = await self._known(message, host)
        try:
            traces = {bytes.fromhex(trace_id): rooted is True for trace_id, rooted in wanted.items()}
        except ValueError:
            raise Refusal(400, "a trace id has 32 hex digits") from None
        found = await self.joining.answer(asker, traces)
        return self._message(traces={trace_id.hex(): word.value for trace_id, word in found.items()})

    def _take_leave(self, message: Message, host: str) -> None:
        if self._url_of(message, host, self._led_to) is None:
            raise _STRANGER
        now_ns, peers, name = self._clock(), self.joining.peers, str(message["name"])
        if message["state"] == _LEAVES:
            peers.leaves(name, now_ns)
        elif message["state"] == _LEFT:
            peers.left(name, now_ns)

    @property
    def _led_to(self) -> dict[str, str]:
        """The addresses that ``peers.addresses`` led to lately, with their hosts."""
        return {url: known for url, (known, _) in self._recent.items()}

    async def _known(self, message: Message, host: str) -> Peer:
        """The monitor that a message comes from. Spans hold contents: they go to configured addresses alone."""
        url = self._url_of(message, host, self._hosts)
        if url is None:
            await self._resolve()
            url = self._url_of(message, host, self._hosts)
        if url is None:
            raise _STRANGER
        return Peer(str(message["name"]), str(message.get("run")), url)

    @staticmethod
    def _url_of(message: Message, host: str, hosts: Mapping[str, str]) -> str | None:
        port = message.get("port")
        return next((url for url, each in hosts.items() if each == host and port_of(url) == port), None)


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        try:
            part, more = await next_part(receive)
        except Disconnected:
            raise Refusal(400, "the request breaks off") from None
        body += part
        if len(body) > MOST_BYTES:
            raise Refusal(413, "the message is too long")
    return body
