"""Sample traffic posted to a running monitor, and the monitor's statuses and failures shown on the terminal.

The call-quality application starts healthy, then a bad prompt goes live, then it is rolled back.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sidejudge.dashboards.pages.status_page import MonitorReport
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.runtime.process import address_lines
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.status import Status

from .traffic import SampleTraffic

if TYPE_CHECKING:
    from sidejudge.monitor.runtime.app import Monitor

CONFIG = Path(str(files(__package__) / "demo.yaml"))
TRACES_PER_S = 12
ACTS = (
    (30.0, 0.04, "all applications work as usual"),
    (45.0, 0.60, "a bad prompt goes live in the call-centre applications"),
    (60.0, 0.04, "the bad prompt is rolled back"),
)
"""Seconds, share of wrong call-centre answers, and a description; then from the beginning."""
SHOWN_EVERY_S = 5.0
COLOURS = {
    Status.HEALTHY: "green",
    Status.WARNING: "yellow",
    Status.CRITICAL: "red",
    Status.INSUFFICIENT_DATA: "dim",
    Status.NO_DATA: "dim",
}


NEXT = (
    ("serve", "a monitor: send OTLP to http://127.0.0.1:4318, see http://127.0.0.1:8790/"),
    ("init --from-traces http://127.0.0.1:8790", "a configuration from what it has seen"),
    ("tail", "each trace as it ends, and why"),
)
"""What to try after the demo."""


class Scene:
    """Plays sample traffic against a monitor for ``seconds`` (None: until it is ended)."""

    def __init__(self, seconds: float | None, acts: Sequence[tuple[float, float, str]] = ACTS) -> None:
        self._seconds = seconds
        self._acts = acts
        self._console = Console(highlight=False)
        self._statuses: dict[tuple[str, ...], Status] = {}
        self._failures_shown = 0

    async def play(self, monitor: Monitor, addresses: Mapping[str, str]) -> None:
        """Send, listen and show, until cancelled or the time is over."""
        self._print("[bold]sidejudge demo[/bold]: real recorded traces, replayed with fresh ids; Ctrl-C ends it")
        for line in address_lines(addresses):
            self._print(line)
        monitor.pipeline.listeners.append(self._take)
        sending = asyncio.create_task(self._send(addresses["otlp"]))
        showing = asyncio.create_task(self._show(monitor))
        try:
            await asyncio.wait((sending, showing), timeout=self._seconds, return_when=asyncio.FIRST_EXCEPTION)
            for done in (sending, showing):
                if done.done():
                    done.result()
        finally:
            sending.cancel()
            showing.cancel()
            self._report(monitor.view.status())
            self._print("\n[bold]next[/bold], with your own application:")
            called = "sidejudge" if shutil.which("sidejudge") else sys.argv[0]  # that of an environment not activated
            for command, what in NEXT:
                self._print(f"  {escape(f'{called} {command}')}  [dim]# {what}[/dim]")

    def _print(self, what: str | Table) -> None:
        self._console.print(what, soft_wrap=True)

    async def _send(self, otlp: str) -> None:
        where, traffic = urlsplit(otlp), SampleTraffic()
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=5)
        with contextlib.closing(connection):
            for seconds, wrong, what in cycle(self._acts):
                self._print(f"\n[bold]▶ {what}[/bold]")
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    body = traffic.next(time.time_ns(), wrong).body
                    await asyncio.to_thread(_post, connection, body)
                    await asyncio.sleep(1 / TRACES_PER_S)

    async def _show(self, monitor: Monitor) -> None:
        shown_s = 0.0
        while True:
            await asyncio.sleep(0.5)
            report = monitor.view.status()
            changed = [self._changed(status) for status in report.services]
            if any(changed) or (changed and time.monotonic() - shown_s >= SHOWN_EVERY_S):
                shown_s = time.monotonic()
                self._failures_shown = 0
                self._report(report)

    def _report(self, report: MonitorReport) -> None:
        self._print(_table(report.services))
        counts = ", ".join(f"{reason} {count}" for reason, count in report.ended.items() if count)
        self._print(f"[dim]traces: {report.seen} seen, {report.open} open; {counts}[/dim]")

    def _changed(self, status: ServiceStatus) -> bool:
        key = (status.service, status.environment, status.rubric)
        now = status.appraisal.status
        before = self._statuses.get(key, Status.INSUFFICIENT_DATA)
        self._statuses[key] = now
        if now is before:
            return False
        colour = COLOURS[now]
        self._print(
            f"[bold {colour}]● {escape(status.service)} · {status.rubric}: {before.value} → {now.value}[/]  "
            f"[dim]{escape(status.appraisal.reason)}[/dim]"
        )
        return True

    def _take(self, result: TraceResult) -> None:
        """Print a few of the failures; the page shows the rest."""
        for verdict in result.changed:
            if verdict.passed is False and self._failures_shown < 2:
                self._failures_shown += 1
                composite = "no score" if verdict.composite is None else f"{verdict.composite:.3f}"
                self._print(
                    f"[red]✗[/red] {escape(result.service or '')} · {verdict.rubric} {composite}  "
                    f"[dim]{escape(shorten(verdict.reason, 100, placeholder=' …'))}  {result.trace_id.hex()}[/dim]"
                )


def _post(connection: http.client.HTTPConnection, body: bytes) -> None:
    connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
    connection.getresponse().read()


def _table(statuses: Iterable[ServiceStatus]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("service", "rubric", "status", "pass rate", "bounds", "n"):  # 80 columns must do
        table.add_column(
            head,
            justify="left" if head in ("service", "rubric", "status") else "right",
            no_wrap=True,
            overflow="ignore",
        )
    for each in statuses:
        estimate = each.estimate
        status = each.appraisal.status
        table.add_row(
            escape(each.service),
            each.rubric,
            f"[{COLOURS[status]}]{status.value}[/]",
            f"{estimate.pass_ratio:.3f}" if estimate else "-",
            f"{estimate.lower:.2f}–{estimate.upper:.2f}" if estimate else "-",
            str(estimate.n if estimate else 0),
        )
    return table
