"""The way of one trace, stage by stage: what each takes of a span and of a trace where every trace is judged.

    python tests/bench/bench_profile.py [--recordings FOLDER] [--spans 4000]

Not a test: it prints a table. CPU time of this process, median of several laps over recordings whose contents do not
repeat, the largest stage first; beside it the walk that a plain reader of the same bytes takes. The event loop, sockets
and threads are left out: what they add is the difference to ``bench_traffic.py``.
"""

# ruff: noqa: T201  # a script prints

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.integrations.otlp.wire.request import ChunkOrigin, split
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.deliver.kept_contents import KeepingTerms, KeptContents
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.trace.trace import Trace
from tests.bench.load import KEPT, Load
from tests.bench.servers import _attributes, _each_span

LAPS = 5
JUDGED = ("workflow", "entity")
ANY = parse_scenario("any", {})
"""Without it ``workflow`` has nothing to look at, and looks at nothing."""
TERMS = KeepingTerms(keep_ns=1 << 60, passed=1.0, most_bytes=1 << 30, redaction=Redaction(("key",)))


def lap(load: Load, spans: int, seed: int) -> tuple[dict[str, float], int, int]:
    """CPU seconds of each stage over so many spans, and how many spans and traces there were."""
    took: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        begin = time.process_time()
        try:
            return work()
        finally:
            took[name] = time.process_time() - begin

    bodies = [body for body, _ in load.bodies(spans, random.Random(seed))]
    origin, evaluator = ChunkOrigin("bench", None, 0), Evaluator(RUBRICS)

    def walk(body: bytes) -> None:
        for span in _each_span(ExportTraceServiceRequest.FromString(body)):
            _attributes(span.attributes)

    timed("walk in Python, for comparison", lambda: [walk(body) for body in bodies])
    chunks = timed(
        "split the request, keep its spans",
        lambda: [chunk for body in bodies for chunk in split(body, lambda _: origin).chunks],
    )
    ids = list(dict.fromkeys(chunk.trace_id for chunk in chunks))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "state.sqlite")
        timed("write the spans", lambda: asyncio.run(store.append(chunks, time.time_ns())))
        read = timed("read them", lambda: store.chunks_and_stories(ids))
        kept = timed("decode", lambda: [decode_kept(payloads) for payloads, _ in read])
        spans_of = timed("dialects", lambda: [[normalise(raw) for raw in each.spans] for each in kept])
        traces = timed("tree", lambda: [Trace.of(each[0].trace_id, each, "root_ended") for each in spans_of])
        cases = timed("case", lambda: [extract(trace) for trace in traces])
        cases = [case.drawn(1.0, ANY) for case in cases]
        verdicts = timed("rubrics", lambda: [list(evaluator.evaluate(case, JUDGED, created_at="")) for case in cases])
        documents = timed("verdicts as documents", lambda: [[one.to_json() for one in each] for each in verdicts])
        ends = [
            FinishedTrace(
                trace_id=bytes.fromhex(trace.trace_id), service="bench", reason="scored", closed_ns=0,
                completion="root_ended", revision=1, details={}, chunks=1, verdicts=each,
                keep_contents=True,
            )
            for trace, each in zip(traces, documents, strict=True)
        ]  # fmt: skip
        timed("commit", lambda: asyncio.run(store.finish_each(ends)))
        timed("contents kept of each", lambda: asyncio.run(_keep(store)))
        store.close()
    return took, sum(map(len, spans_of)), len(traces)


async def _keep(store: Store) -> None:
    contents = KeptContents(store, TERMS)
    while store.contents.waiting(1):
        await contents.write()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, default=KEPT, help="folder of CLIENT/SCENARIO/NNN.pb")
    parser.add_argument("--spans", type=int, default=4000)
    args = parser.parse_args()
    load = Load(args.recordings, 100, random.Random(1), laps=3, fresh=True)
    laps = [lap(load, args.spans, seed) for seed in range(LAPS)]
    _, spans, traces = laps[-1]
    taken = {name: statistics.median(took[name] for took, *_ in laps) for name in laps[-1][0]}
    ours = {name: seconds for name, seconds in taken.items() if "comparison" not in name}
    print(f"{spans} spans of {traces} traces of {load.clients} clients, median of {LAPS} laps")
    print(f"{'stage':<36}{'µs a span':>12}{'µs a trace':>12}{'share':>8}")
    whole = sum(ours.values())
    for name, seconds in [*sorted(ours.items(), key=lambda each: -each[1]), ("all of these", whole)]:
        print(f"{name:<36}{seconds / spans * 1e6:>12.1f}{seconds / traces * 1e6:>12.0f}{seconds / whole:>8.0%}")
    for name in taken.keys() - ours.keys():
        print(f"{name:<36}{taken[name] / spans * 1e6:>12.1f}{taken[name] / traces * 1e6:>12.0f}")


if __name__ == "__main__":
    main()
