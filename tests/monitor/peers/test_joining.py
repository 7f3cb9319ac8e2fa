"""Resizes of a fleet under load, in virtual time: a trace is judged whole, or its verdict reports that it may not be.

Each monitor here has a real assembler, real peers and real joining. The front, the network and the store are simulated.
"""

from __future__ import annotations

import asyncio
import bisect
import inspect
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from zlib import crc32

import pytest

from sidejudge.integrations.otlp.wire.chunk import Chunk, ChunkOrigin, SpanHeader
from sidejudge.monitor.ingest.assembler import Assembler, AssemblyLimits
from sidejudge.monitor.peers.joining import Joining
from sidejudge.monitor.peers.peers import Peers

S = 1_000_000_000
TICK = S // 4
GREET, INTERVAL, SETTLE, WAIT = 5 * S, 5 * S, 15 * S, 30 * S
BEGIN = 1_000 * S


class Ring:
    """The exporter's ring: 100 places of each backend on a circle of 36,000, by CRC-32."""

    def __init__(self, names):
        places = {}
        for name in sorted(names):
            for point in range(100):
                places.setdefault(crc32(name.encode() + bytes([point])) % 36_000, name)
        self._places = sorted(places.items())

    def of(self, trace_id):
        return self._places[bisect.bisect_left(self._places, (crc32(trace_id) % 36_000, "")) % len(self._places)][1]


@dataclass
class World:
    """The clock, the monitors by name, and the network between them."""

    now: int = BEGIN
    nodes: dict[str, Node] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    rings: list[tuple[int, Ring]] = field(default_factory=list)
    judged: list[tuple[str, bytes, str, frozenset[bytes]]] = field(default_factory=list)
    joins: bool = True

    def up(self, name):
        return name in self.nodes and name not in self.down

    def resize(self, names, lag=INTERVAL):
        """The front routes by these names from some time on: it resolves them only so often."""
        self.rings.append((self.now + lag, Ring(names)))

    def route(self, chunk):
        ring = [ring for at, ring in self.rings if at <= self.now][-1]
        name = ring.of(chunk.trace_id)
        if self.up(name):
            self.nodes[name].take(chunk)
            return True
        return False  # the sender keeps it and sends again


class Node:
    def __init__(self, world, name, store=None):
        self.world, self.name, self.store = world, name, {} if store is None else store
        self.assembler = Assembler(AssemblyLimits(grace_ns=2 * S, idle_ns=120 * S, root_wait_ns=0))
        self.joining = Joining(
            name=name, assembler=self.assembler, peers=Peers(settle_ns=SETTLE, now_ns=world.now), transport=self,
            earliest=self.earliest, wait_ns=WAIT, longest_ns=3_600 * S, most=10_000, clock_ns=lambda: world.now,
        )  # fmt: skip
        done = {trace_id for judge, trace_id, _, _ in world.judged if judge == name}
        for chunks in [held for trace_id, held in self.store.items() if trace_id not in done]:
            for chunk in chunks:
                self.assembler.add(chunk, world.now)
        self.run = f"{name}{world.now}"
        self.greeted = 0

    def take(self, chunk):
        self.store.setdefault(chunk.trace_id, []).append(chunk)
        self.assembler.add(chunk, self.world.now)

    async def earliest(self, trace_ids):
        return {each: min(int(c.payload) for c in self.store[each]) for each in trace_ids}

    async def ask(self, peer, traces):
        if not self.world.up(peer.name):
            return None
        other = self.world.nodes[peer.name]
        return await other.joining.answer(type(peer)(self.name, self.run, self.name), traces)

    async def send(self, peer, trace_ids):
        if not self.world.up(peer.name):
            return set()
        for trace_id in trace_ids:
            for chunk in self.store.get(trace_id, []):
                self.world.nodes[peer.name].take(chunk)
        return set(trace_ids)

    async def end(self, trace_ids):
        for trace_id in trace_ids:
            self.store.pop(trace_id, None)

    async def tick(self):
        now, world = self.world.now, self.world
        if now >= self.greeted:
            others = {n: (n, world.nodes[n].run) for n in world.nodes if world.up(n) and n != self.name}
            self.joining.peers.found(others, now, listed=True)
            self.greeted = now + GREET
        closed = self.assembler.due(now)
        for closing in self.joining.admit(closed) if world.joins else closed:
            spans = frozenset(h.span_id for c in self.store.get(closing.trace_id, []) for h in c.headers)
            world.judged.append((self.name, closing.trace_id, closing.completion, spans))
        if world.joins:
            await self.joining.round()

    async def drain(self):
        """SIGTERM: the others know, and what is not judged goes by the front to wherever the rest goes."""
        others = [node for name, node in self.world.nodes.items() if name != self.name and self.world.up(name)]
        for node in others:
            node.joining.peers.leaves(self.name, self.world.now)
        self.joining.end(hands_over=True)
        judged = {trace_id for name, trace_id, _, _ in self.world.judged if name == self.name}
        gone = [trace_id for trace_id in self.store if trace_id not in judged]
        left = [chunk for trace_id in gone for chunk in self.store[trace_id]]
        del self.world.nodes[self.name]
        for node in others:
            node.joining.peers.left(self.name, self.world.now)
        return left


def chunk(trace_id, number, parent, started):
    header = SpanHeader(number.to_bytes(8, "big"), parent.to_bytes(8, "big") if parent else b"")
    return Chunk(trace_id=trace_id, payload=str(started).encode(), headers=(header,), origin=ChunkOrigin("s", None, 0))


def traffic(seed, count, seconds):
    """Spans by the time that they are exported: children before their parents, the root last."""
    draw = random.Random(seed)
    events, whole = [], {}
    for _ in range(count):
        trace_id, spans = draw.randbytes(16), draw.randint(1, 6)
        begin = BEGIN + int(draw.uniform(0, seconds) * S)
        length = int(draw.expovariate(1 / 15) * S) + S
        for number in range(1, spans + 1):  # 1 is the root
            ended = begin + (length if number == 1 else int(draw.uniform(0.05, 0.95) * length))
            started = begin if number == 1 else begin + (ended - begin) // 2
            events.append((ended, trace_id, chunk(trace_id, number, 0 if number == 1 else 1, started)))
        whole[trace_id] = frozenset(n.to_bytes(8, "big") for n in range(1, spans + 1))
    return sorted(events, key=lambda each: each[:2]), whole


async def simulate(world, events, changes, seconds=620):
    """Run the load, and each change at its second."""
    waiting, changes = [], dict(changes)
    for tick in range(int(seconds * S / TICK)):
        world.now = BEGIN + tick * TICK
        if world.now % S == 0 and (change := changes.pop((world.now - BEGIN) // S, None)) is not None:
            waiting += [(world.now, each) for each in await change(world) or ()]
        while events and events[0][0] <= world.now:
            ended, _, each = events.pop(0)
            waiting.append((ended, each))
        waiting = [each for each in waiting if not world.route(each[1])]
        for node in [node for name, node in world.nodes.items() if world.up(name)]:
            await node.tick()
    assert not waiting


def start(*names, joins=True):
    world = World(joins=joins)
    for name in names:
        world.nodes[name] = Node(world, name)
    world.resize(names, lag=0)
    return world


def joined(name):
    async def change(world):
        world.nodes[name] = Node(world, name)
        world.resize([n for n in world.nodes if world.up(n)])

    return change


def left(name):
    async def change(world):
        chunks = await world.nodes[name].drain()
        world.resize(world.nodes, lag=0 if world.now % 2 else INTERVAL)
        return chunks

    return change


def crashed(name, *, back):
    """A kill; ``back``: the front has noticed, and the monitor starts again with its store."""

    async def change(world):
        if back:
            world.down.discard(name)
            world.nodes[name] = Node(world, name, world.nodes[name].store)
        else:
            world.down.add(name)
        world.resize([n for n in world.nodes if world.up(n)], lag=2 * S)

    return change


RESIZES = {60: joined("c"), 120: joined("d"), 180: left("a"), 240: left("c"), 300: joined("a2")}


def silently_wrong(world, whole):
    """Traces of which a verdict passed for complete, and was reached on a part of the spans."""
    return {t for _, t, completion, spans in world.judged if completion == "root_ended" and spans != whole[t]}


@pytest.mark.parametrize("seed", range(3))
async def test_resizes_tear_no_trace_and_none_is_judged_twice(seed):
    events, whole = traffic(seed, 600, 360)
    world = start("a", "b")
    await simulate(world, events, RESIZES)
    assert silently_wrong(world, whole) == set()
    verdicts = Counter(trace_id for _, trace_id, _, _ in world.judged)
    assert verdicts == dict.fromkeys(whole, 1)
    assert {completion for _, _, completion, _ in world.judged} == {"root_ended"}, "nothing had to be given up"
    assert all(node.joining.waiting == 0 for node in world.nodes.values())


async def test_without_joining_the_same_resizes_reach_wrong_verdicts():
    events, whole = traffic(0, 600, 360)
    world = start("a", "b", joins=False)
    await simulate(world, events, RESIZES)
    assert len(silently_wrong(world, whole)) > 10


@pytest.mark.parametrize("seed", range(3))
async def test_spans_on_a_monitor_that_is_gone_make_a_verdict_incomplete_and_never_wrong(seed):
    events, whole = traffic(seed, 600, 360)
    world = start("a", "b", "c")
    await simulate(world, events, {100: crashed("c", back=False)})
    assert silently_wrong(world, whole) == set()
    torn = {trace_id for _, trace_id, completion, _ in world.judged if completion == "torn"}
    assert torn
    assert len(torn) < 0.2 * len(whole), "what ended before and began after is not touched"


async def test_a_monitor_that_comes_back_in_time_has_what_the_others_wait_for():
    events, whole = traffic(7, 600, 360)
    world = start("a", "b", "c")
    await simulate(world, events, {100: crashed("c", back=False), 112: crashed("c", back=True)})
    assert silently_wrong(world, whole) == set()
    assert {completion for _, _, completion, _ in world.judged} == {"root_ended"}
    assert {trace_id for _, trace_id, _, _ in world.judged} == whole.keys()


async def test_what_waits_is_bounded():
    world = start("a", "b")
    node = world.nodes["a"]
    node.joining._most = 3
    for number in range(1, 6):
        node.take(chunk(bytes(15) + bytes([number]), 1, 0, BEGIN))
    world.now += 3 * S
    closed = node.joining.admit(node.assembler.due(world.now))
    assert node.joining.waiting == 3
    assert [closing.completion for closing in closed] == ["torn", "torn"]
    assert replace(closed[0], completion="root_ended").whole
    assert inspect.iscoroutinefunction(node.joining.round)


async def test_a_store_that_cannot_be_read_holds_nothing_back_for_ever():
    world = start("a", "b")
    node = world.nodes["a"]

    async def broken(trace_ids):
        raise OSError("no store")

    node.joining._earliest = broken
    node.take(chunk(bytes(15) + b"\1", 1, 0, BEGIN))
    world.now += 3 * S
    assert node.joining.admit(node.assembler.due(world.now)) == []
    for seconds, completions in ((0, []), (WAIT // S, ["torn"])):
        world.now += seconds * S
        with pytest.raises(OSError, match="no store"):
            await node.joining.round()
        assert [closing.completion for closing in node.joining.admit([])] == completions


async def test_a_monitor_that_fails_does_not_cut_off_what_is_being_sent_to_another():
    world = start("a", "b", "c")
    node = world.nodes["a"]
    ask, send = node.ask, node.send

    async def fails_at_c(peer, traces):
        if peer.name == "c":
            raise OSError("no c")
        return await ask(peer, traces)

    async def slow(peer, trace_ids):
        await asyncio.sleep(0.01)  # c fails meanwhile
        return await send(peer, trace_ids)

    node.ask, node.send = fails_at_c, slow
    trace_id = bytes(15) + b"\1"
    world.nodes["b"].take(chunk(trace_id, 1, 0, BEGIN))
    node.take(chunk(trace_id, 2, 1, BEGIN))
    others = {name: (name, world.nodes[name].run) for name in ("b", "c")}
    node.joining.peers.found(others, world.now, listed=True)
    world.now += 121 * S  # nothing comes any more
    assert node.joining.admit(node.assembler.due(world.now)) == []
    with pytest.raises(OSError, match="no c"):
        await node.joining.round()
    assert trace_id not in node.store, "it was sent, and has ended here"
    assert len(world.nodes["b"].store[trace_id]) == 2


def test_after_a_clock_was_set_back_changes_count_and_what_it_had_dated_ahead_is_over():
    peers = Peers(settle_ns=SETTLE, now_ns=0)
    both = {"http://a": ("a", "1"), "http://b": ("b", "1")}
    only = {"http://b": ("b", "1")}
    peers.found(both, BEGIN, listed=True)
    peers.found(only, BEGIN + 7_200 * S, listed=True)
    for later in range(0, 100, 5):
        peers.found(only, BEGIN + (100 + later) * S, listed=True)
    at = BEGIN + 150 * S
    assert not peers.may_lack(at, at, whole=False), "nothing has changed since"
    assert [peer.name for peer in peers.holders(at, at)] == ["b"]
    peers.found(both, BEGIN + 200 * S, listed=True)
    assert peers.may_lack(BEGIN + 195 * S, BEGIN + 201 * S, whole=True), "a came in between"
