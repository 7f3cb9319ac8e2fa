"""What up to 10⁴ services cost in Prometheus: series, size and time of a scrape, memory, churn. ``make bench-scale``.

A whole monitor in this process, without HTTP: each service has verdicts by one rubric (``run_health``). It prints
Markdown.
"""

# ruff: noqa: T201  # a script prints

from __future__ import annotations

import asyncio
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sidejudge.monitor.config import Config
from sidejudge.monitor.runtime.app import Monitor
from tests.otlp_requests import S, request, span, trace
from tests.waiting import until

AT_ONCE = 200
"""Services in one request."""
PLAN = ((10, 50), (100, 50), (1_000, 50), (10_000, 50), (1_000, 1_000), (10_000, 1_000))
"""Services, and ``metrics.label_cap``."""
_SERIES = re.compile(rb"^([a-z_]+(?:\{.*\})?) ", re.MULTILINE)


async def send(monitor: Monitor, first: int, services: int, numbers: int) -> None:
    """A judged trace of each of these services; ``numbers`` is where its trace ids begin."""
    for begin in range(first, first + services, AT_ONCE):
        some = range(begin, min(begin + AT_ONCE, first + services))
        await monitor.intake.consume(request(
            [S(trace_id=trace(numbers + n), span_id=span(1), service=f"service-{n:05}") for n in some]
        ))  # fmt: skip
        await until(lambda: monitor.outcomes.open <= AT_ONCE)
    await until(lambda: not monitor.outcomes.open)


async def scrape(monitor: Monitor) -> tuple[set[bytes], int, float]:
    """The series of a scrape, its bytes, and the CPU seconds that it took."""
    begun = time.process_time()
    body, _ = await monitor.view.metrics("application/openmetrics-text;version=1.0.0")
    spent = time.process_time() - begun
    return {match[1] for match in _SERIES.finditer(body)}, len(body), spent


async def row(services: int, cap: int) -> str:
    """One row, measured in this process."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config.model_validate({
            "sampling": {"rate": 1.0}, "assembly": {"grace": "0s"}, "metrics": {"label_cap": cap},
            "store": {"path": str(Path(folder) / "state.sqlite")}, "default_rubrics": ["run_health"],
            "sources": {"otlp": {"http": "127.0.0.1:0"}}, "api": {"listen": "127.0.0.1:0"},
        })  # fmt: skip
        monitor = Monitor(config)
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await monitor.start()
        try:
            await send(monitor, 0, services, 0)
            await scrape(monitor)
            series, size, spent = await scrape(monitor)
            held_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024
            # As many other services come, as where names hold a version or a customer.
            await send(monitor, services, services, 1_000_000)
            later, _, _ = await scrape(monitor)
        finally:
            await monitor.stop()
    return (
        f"| {services:,} | {cap:,} | {len(series):,} | {size / 1e6:.2f} | {spent * 1e3:.0f} | {held_mib:.0f} | "
        f"{len(later - series):,} |"
    )


def main() -> None:
    """Each row in a process of its own, for memory is that of a process."""
    if len(sys.argv) == 3:
        print(asyncio.run(row(int(sys.argv[1]), int(sys.argv[2]))))
        return
    heads = "services", "`metrics.label_cap`", "series", "a scrape, MB", "a scrape, CPU ms", "memory, MiB"
    print("|", " | ".join((*heads, "new series after as many other services")), "|")
    print("|---|---|---|---|---|---|---|", flush=True)
    for services, cap in PLAN:
        subprocess.run([sys.executable, "-m", "tests.bench.bench_series", str(services), str(cap)], check=True)


if __name__ == "__main__":
    main()
