"""What decoding and normalising a span costs, client by client, beside a plain reader of the same bytes.

    SIDEJUDGE_SHARED=FOLDER python tests/bench/bench_dialects.py

The baseline is `google.protobuf.json_format.MessageToDict`, what a script that looks at spans would call. Input: the
recorded requests of real clients in the shared folder. Medians of several laps; ratios are the point.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rich.console import Console
from rich.table import Table

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.decode import decode_spans

SHARED = Path(os.environ.get("SIDEJUDGE_SHARED", Path(__file__).parents[3] / "shared"))
LAPS, REPEATS = 5, 3


def main() -> None:
    console = Console()
    folders = sorted(folder for folder in (SHARED / "corpus" / "otlp").glob("*") if folder.is_dir())
    if not folders:
        console.print(f"no recorded corpus at {SHARED}: nothing measured")
        return
    table = Table("client", "spans", "attributes a span", "decode µs", "normalise µs", "both of the baseline", box=None)
    total: list[tuple[int, float, float, float]] = []
    for folder in folders:
        bodies = [p.read_bytes() for p in sorted(folder.rglob("*.pb")) if not p.name.endswith(".logs.pb")]
        raws = [raw for body in bodies for raw in decode_spans(body)]
        attributes = sum(len(raw.attributes) for raw in raws) / len(raws)
        plain = lap(lambda b=bodies: [MessageToDict(ExportTraceServiceRequest.FromString(body)) for body in b])
        decode = lap(lambda b=bodies: [decode_spans(body) for body in b])
        normalised = lap(lambda r=raws: [normalise(raw) for raw in r])
        total.append((len(raws), plain, decode, normalised))
        row(table, folder.name, attributes, *total[-1])
    summed = [sum(column) for column in zip(*total, strict=True)]
    row(table, "all", float("nan"), int(summed[0]), *summed[1:])
    console.print(table)


def row(table: Table, name: str, attributes: float, spans: int, plain: float, decode: float, normalised: float) -> None:
    shown = "" if attributes != attributes else f"{attributes:.0f}"  # noqa: PLR0124 - NaN is not itself
    times = (f"{seconds / spans * 1e6:.1f}" for seconds in (decode, normalised))
    table.add_row(name, str(spans), shown, *times, f"{(decode + normalised) / plain:.2f} ×")


def lap(stage: Callable[[], object]) -> float:
    """Median CPU seconds of one run."""
    taken = []
    for _ in range(LAPS):
        start = time.process_time()
        for _ in range(REPEATS):
            stage()
        taken.append((time.process_time() - start) / REPEATS)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
