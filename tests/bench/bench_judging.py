"""What judging costs, stage by stage, beside what a plain reader of the same traces would pay.

    python tests/bench/bench_judging.py

The baseline is `google.protobuf.json_format.MessageToDict`, what a script that looks at traces would call. Input: the
recordings of the demo. Medians of several laps; ratios are the point, absolute times are this machine's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rich.console import Console
from rich.table import Table

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.trace import Trace

TRACES = 200
LAPS = 7
SCENARIO: Any = {"agents_should_include": ["research"], "tools_should_include": ["pdf_retrieval"]}


def main() -> None:
    traffic = SampleTraffic()
    bodies = [traffic.next(time.time_ns(), wrong=0.2).body for _ in range(TRACES)]
    raws = [decode_spans(body) for body in bodies]
    spans = [[normalise(raw) for raw in each] for each in raws]
    traces = [Trace.of(each[0].trace_id, each, "root_ended") for each in spans]
    cases = [extract(trace) for trace in traces]
    count = sum(map(len, raws))
    evaluator = Evaluator(RUBRICS)

    def judge(case: Case) -> None:
        rubric = case.task if isinstance(case.task, str) else "workflow"
        for verdict in evaluator.evaluate(replace(case, scenario=SCENARIO), (rubric,), created_at=""):
            verdict.to_json()

    stages: dict[str, Callable[[], object]] = {
        "baseline: parse + MessageToDict": lambda: [
            MessageToDict(ExportTraceServiceRequest.FromString(body)) for body in bodies
        ],
        "decode": lambda: [decode_spans(body) for body in bodies],
        "normalise to the normal form": lambda: [normalise(raw) for each in raws for raw in each],
        "extract the case": lambda: [extract(trace) for trace in traces],
        "judge": lambda: [judge(case) for case in cases],
    }
    taken = {name: statistics.median(lap(stage) for _ in range(LAPS)) for name, stage in stages.items()}
    ours = sum(seconds for name, seconds in taken.items() if not name.startswith("baseline"))
    taken["all of ours"] = ours
    table = Table("stage", "µs per span", "µs per trace", "of the baseline", box=None)
    for name, seconds in taken.items():
        ratio = seconds / taken["baseline: parse + MessageToDict"]
        table.add_row(name, f"{seconds / count * 1e6:.1f}", f"{seconds / TRACES * 1e6:.0f}", f"{ratio:.2f} ×")
    console = Console()
    console.print(f"{TRACES} traces, {count} spans, median of {LAPS} laps")
    console.print(table)


def lap(stage: Callable[[], object]) -> float:
    start = time.process_time()
    stage()
    return time.process_time() - start


if __name__ == "__main__":
    main()
