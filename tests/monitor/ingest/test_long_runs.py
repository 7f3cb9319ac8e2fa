"""Runs from seconds to a day, exported as exporters do it: batched, retried, reordered, the root last."""

from __future__ import annotations

import heapq
import math
import random
import tracemalloc
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from sidejudge.integrations.otlp.wire.request import Chunk, ChunkOrigin, SpanHeader
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.assembler import Arrival, Assembler, AssemblyLimits

S = 1_000_000_000
BATCH_S = 5.0
"""How often an exporter sends what has ended, as OpenTelemetry's batch processor does."""
RETRIED = 0.01
"""Share of batches that reach the monitor on a later attempt, and half of them on both."""
LENGTHS = (("seconds", 1, 60), ("minutes", 60, 3_600), ("hours", 3_600, 86_000))
TODAY = AssemblyLimits(idle_max_ns=120 * S)
WAITING = AssemblyLimits(idle_max_ns=120 * S, root_wait_ns=86_400 * S)


@dataclass
class Run:
    """A run of an application: what it is, and what became of it."""

    service: str
    kind: str
    spans: int
    closings: list[tuple[Closing, float, int]] = field(default_factory=list)  # with when, and how many spans it had
    last_s: float = 0.0
    refused: int = 0

    @property
    def judged_whole(self) -> bool:
        return bool(self.closings) and self.closings[0][2] == self.spans

    @property
    def whole_in_the_end(self) -> bool:
        return bool(self.closings) and self.closings[-1][2] == self.spans

    @property
    def waited_s(self) -> float:
        """From the arrival of its last span to the closing that has it."""
        return next((at - self.last_s for _, at, spans in self.closings if spans == self.spans), math.inf)


def chunks_of(draw: random.Random, number: int, service: str, start_s: float, length_s: float, *, rooted: bool):
    """What arrives of one run and when: ``(second, chunk)``, with a person's pauses between its steps."""
    steps = draw.randint(3, 12)
    moments = sorted(draw.uniform(0, length_s) for _ in range(steps * 2))
    ended: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by the batch that it leaves in: (span, parent)
    span = 1
    for begin, end in zip(moments[::2], moments[1::2], strict=True):
        step, span = span + 1, span + 3
        for child, parent, moment in ((step + 1, step, (begin + end) / 2), (step + 2, step, end), (step, 1, end)):
            ended[int((start_s + moment) // BATCH_S)].append((child, parent))
        span = step + 2
    if rooted:
        ended[int((start_s + length_s) // BATCH_S)].append((1, 0))
    origin = ChunkOrigin(service, None, 0)
    for batch, spans in ended.items():
        headers = tuple(
            SpanHeader(span_id=s.to_bytes(8, "big"), parent_id=p.to_bytes(8, "big") if p else b"") for s, p in spans
        )
        chunk = Chunk(
            trace_id=number.to_bytes(16, "big"), payload=bytes(400 * len(spans)), headers=headers, origin=origin
        )
        at_s = (batch + 1) * BATCH_S + draw.uniform(0, 0.3)
        if draw.random() < RETRIED:
            if draw.random() < 0.5:
                yield at_s, chunk
            at_s += draw.uniform(1, 60)
        yield at_s, chunk


def simulate(limits: AssemblyLimits) -> tuple[list[Run], Assembler, int]:
    """Play the runs; what became of each, the assembler at the end, and how many traces were open at most."""
    draw, days = random.Random(1), 3.0
    made: list[Run] = []
    arrivals: list[tuple[float, int, Chunk]] = []
    for number in range(1, 3_001):
        kind, shortest, longest = LENGTHS[number % 3]
        rooted = number % 10 != 0
        service = kind if rooted else f"{kind}, rootless"
        length_s = math.exp(draw.uniform(math.log(shortest), math.log(longest)))
        found = list(chunks_of(draw, number, service, draw.uniform(0, days * 86_400), length_s, rooted=rooted))
        spans = len({header.span_id for _, chunk in found for header in chunk.headers})
        made.append(Run(service, kind, spans, last_s=max(at_s for at_s, _ in found)))
        arrivals += [(at_s, len(arrivals) + n, chunk) for n, (at_s, chunk) in enumerate(found)]
    heapq.heapify(arrivals)
    assembler, most = Assembler(limits), 0

    def close_until(second: float) -> None:
        while (due_ns := assembler.due_ns) is not None and due_ns <= second * S:
            for closing in assembler.due(due_ns):
                run = made[int.from_bytes(closing.trace_id, "big") - 1]
                run.closings.append((closing, due_ns / S, assembler.size(closing.trace_id).spans))

    while arrivals:
        at_s, _, chunk = heapq.heappop(arrivals)
        close_until(at_s)
        if assembler.add(chunk, int(at_s * S)) is Arrival.TOO_LATE:
            made[int.from_bytes(chunk.trace_id, "big") - 1].refused += len(chunk.headers)
        most = max(most, assembler.open_traces)
    close_until((days + 3) * 86_400)
    return made, assembler, most


def share(runs: list[Run], what: str) -> float:
    return sum(getattr(run, what) for run in runs) / len(runs)


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


@pytest.fixture(scope="module")
def today():
    return simulate(TODAY)


@pytest.fixture(scope="module")
def waiting():
    return simulate(WAITING)


def of(runs: list[Run], kind: str, *, rooted: bool = True) -> list[Run]:
    """The runs of a length, without the first of them: of these nothing was known yet."""
    return [run for run in runs if run.kind == kind and (run.service == kind) is rooted][20:]


def test_without_waiting_for_roots_long_runs_are_cut_and_what_comes_later_is_refused(today):
    runs, _, _ = today
    assert share(of(runs, "seconds"), "judged_whole") > 0.9
    assert share(of(runs, "hours"), "judged_whole") < 0.02
    assert share(of(runs, "hours"), "whole_in_the_end") < 0.1
    assert sum(run.refused for run in runs) > 1_000


def test_runs_of_any_length_are_judged_whole_at_once(waiting):
    runs, _, _ = waiting
    for kind, *_ in LENGTHS:
        assert share(of(runs, kind), "judged_whole") > 0.96, kind  # a retried batch may come after the root
        assert share(of(runs, kind), "whole_in_the_end") > 0.998, kind


def test_a_verdict_does_not_wait_for_longer_than_the_grace(waiting):
    runs, _, _ = waiting
    for kind, *_ in LENGTHS:
        assert quantile([run.waited_s for run in of(runs, kind)], 0.95) < 3.0, kind


def test_traces_of_a_service_without_roots_close_as_ever(today, waiting):
    before, after = (of(runs, "seconds", rooted=False) for runs, _, _ in (today, waiting))
    assert [[at for _, at, _ in run.closings] for run in before] == [[at for _, at, _ in run.closings] for run in after]
    assert quantile([run.waited_s for run in after], 0.95) <= 120.0


def test_what_waits_costs_a_kilobyte_a_trace_and_no_trace_is_left(waiting):
    runs, assembler, most = waiting
    assert assembler.open_traces == 0
    assert most < 1.3 * sum(86_000 for run in runs if run.kind == "hours") / (3 * 86_400)
    tracemalloc.start()
    held = Assembler(WAITING)
    draw = random.Random(3)
    for number in range(1, 501):
        for at_s, chunk in chunks_of(draw, number, "hours", 0, 80_000, rooted=False):
            held.add(chunk, int(at_s * S))
    assert held.open_traces == 500
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / 500 < 6_000


def agent(number: int, *spans: tuple[int, int]) -> Chunk:
    headers = tuple(
        SpanHeader(span_id=s.to_bytes(8, "big"), parent_id=p.to_bytes(8, "big") if p else b"") for s, p in spans
    )
    return Chunk(
        trace_id=number.to_bytes(16, "big"), payload=b"x" * 100, headers=headers, origin=ChunkOrigin("agent", None, 0)
    )


def experienced(limits: AssemblyLimits) -> Assembler:
    """One that knows that traces of ``agent`` have roots."""
    assembler = Assembler(limits)
    for _ in range(10):
        assembler.learn_root("agent", rooted=True)
    return assembler


def test_pressure_closes_first_what_nothing_has_come_of_for_longest():
    assembler = experienced(AssemblyLimits(root_wait_ns=86_400 * S, max_open_traces=3))
    for number in (1, 2, 3):
        assembler.add(agent(number, (2, 1)), number * S)
    assembler.add(agent(1, (3, 1)), 3_000 * S)
    assert assembler.due(3_000 * S) == []
    assembler.add(agent(4, (2, 1)), 3_001 * S)
    (closing,) = assembler.due(3_001 * S)
    assert (closing.trace_id[-1], closing.completion) == (2, "pressure"), "1 is older, and still runs"


def test_what_pressure_closed_becomes_a_revision_when_it_goes_on_hours_later():
    assembler = experienced(AssemblyLimits(root_wait_ns=86_400 * S, max_open_traces=1))
    assembler.add(agent(1, (2, 1)), 0)
    assembler.add(agent(2, (2, 1)), 100 * S)
    assert [closing.trace_id[-1] for closing in assembler.due(100 * S)] == [1]
    assert assembler.awaited(100 * S) == [(1).to_bytes(16, "big")], "its spans are kept"
    assembler.due(20_000 * S)
    assert assembler.add(agent(1, (1, 0)), 20_000 * S) is Arrival.REOPENS
    closings = {closing.trace_id[-1]: closing for closing in assembler.due(20_003 * S)}
    assert (closings[1].completion, closings[1].revision, closings[1].whole) == ("root_ended", 2, True)


def test_a_service_that_stops_sending_roots_is_not_waited_for_all_day():
    assembler = experienced(AssemblyLimits(root_wait_ns=86_400 * S))
    closed: dict[int, float] = {}
    for number in range(100):
        now = number * 60
        assembler.add(agent(number, (2, 1)), now * S)
        closed |= {int.from_bytes(c.trace_id, "big"): now for c in assembler.due(now * S)}
    waits = [closed[number] - number * 60 for number in sorted(closed)]
    assert len(waits) > 90
    assert max(waits) < 3_600
    assert all(wait <= 60 for wait in waits[-50:])


def test_a_root_that_comes_after_hours_leaves_what_is_missing_the_usual_time():
    assembler = experienced(AssemblyLimits(root_wait_ns=86_400 * S))
    assembler.add(agent(1, (3, 2)), 0)
    assembler.add(agent(1, (1, 0)), 7_200 * S)
    assert assembler.due(7_229 * S) == []
    assembler.add(agent(1, (2, 1)), 7_229 * S)
    (closing,) = assembler.due(7_231 * S)
    assert (closing.completion, closing.whole) == ("root_ended", True)


def test_limits_are_of_one_kind():
    """Every pair of lengths meets, so no run is left out between two."""
    assert all(before[2] == after[1] for before, after in pairwise(LENGTHS))


def test_the_roots_of_a_service_whose_traces_are_split_are_not_waited_for_until_its_traces_are_whole_again():
    assembler = Assembler(AssemblyLimits(root_wait_ns=86_400 * S))
    now_ns = 0

    def close(number: int, *spans: tuple[int, int]) -> list[int]:
        """What is closed within a minute of the arrival of these spans."""
        nonlocal now_ns
        assembler.add(agent(number, *spans), now_ns)
        now_ns += 60 * S
        return [int.from_bytes(closing.trace_id, "big") for closing in assembler.due(now_ns)]

    for number in range(1, 8):
        assert close(number, (1, 0), (2, 1)) == [number]
    assert close(50, (3, 2)) == [], "its root is waited for"
    assert close(8, (1, 0), (3, 2)) == [8]
    assert close(9, (1, 0), (3, 2)) == [9, 50], "2 of 9 lack a parent"
    assert close(51, (3, 2)) == [51]
    for number in range(10, 30):
        close(number, (1, 0), (2, 1))
    assert close(52, (3, 2)) == [], "2 of 29 do"
