"""A rehearsal: four services whose answers grow worse and better as they are told, watched by everything that watches.

A real monitor, a real Prometheus with the rules that ``export rules`` writes under the monitor's own configuration, a
real Alertmanager that hears of both, and a receiver of each one's messages.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sidejudge.dashboards.rules.recordings import STATUS, effective
from tests.alertmanager import RealAlertmanager, alertmanager
from tests.dashboards.prometheus_server import Prometheus
from tests.fakes.judge import judges
from tests.fakes.openai import Provider
from tests.fakes.receiver import FakeReceiver, receiving
from tests.forked import sidejudge
from tests.otlp_requests import S, request, span
from tests.running import ROOT, Running

SHORTER = 300
"""Every time of the defaults is divided by this: an hour's window is 12 s. Prometheus counts whole seconds, so a look
every 0.2 s is one a second, and 3 of 4 of them must agree where it were 10 of 12."""
ALERTS = {
    "mode": "bound", "window": "12s", "look": "1s", "min_samples": 20,
    "hysteresis": {"needed": 3, "looks": 4, "hold": "6s"},
    "limits": {"lasting": "2s", "keep": "3s"},
}  # fmt: skip
CODES = {"no_data": -2, "insufficient_data": -1, "healthy": 0, "warning": 1, "critical": 2}
TICK_S = 0.25
A_TICK = {"shop": 5, "bank": 5, "till": 2, "desk": 2}
"""Traces of each service in a tick; those of the desk need the judge."""
ENOUGH = {"shop": 120, "bank": 120, "till": 20, "desk": 20}
"""Verdicts in a window with which nothing is undecided but at a drop: half of all, or ``min_samples``. A machine may be
too busy for them, and the judge away for longer than a window; then a status that is undecided is not looked at."""
SCARCE_S = 5
"""For how long after it had fewer a status may be undecided: looks that have to agree."""
USED = "search_orders"
MODEL = "openai/gpt-4.1-mini-2025-04-14"


class Traffic:
    """Traces of all services from a thread. ``wrong`` is the share of each service's that fail; ``None``: silence."""

    def __init__(self, monitor: Running) -> None:
        self.wrong: dict[str, float | None] = dict.fromkeys(A_TICK, 0.05) | {"till": 0.0, "desk": 0.0}
        self._monitor, self._over = monitor, threading.Event()
        self._owed, self._number, self._draw = dict.fromkeys(A_TICK, 0.0), 0, random.Random(7)
        self._thread = threading.Thread(target=self._send, daemon=True)

    @contextmanager
    def on(self) -> Iterator[Traffic]:
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()

    def _send(self) -> None:
        due_s = time.monotonic()
        while not self._over.wait(due_s - time.monotonic()):
            due_s += TICK_S  # on a busy machine too as many come in a window
            spans = [each for service, many in A_TICK.items() for _ in range(many) for each in self._trace(service)]
            self._monitor.post(request(spans, {"deployment.environment.name": "prod"}))

    def _trace(self, service: str) -> list[S]:
        wrong = self.wrong[service]
        if wrong is None:
            return []
        self._number += 1
        self._owed[service] += wrong  # as evenly as it can be: what is tried is not chance
        fails = self._owed[service] >= 1
        self._owed[service] -= fails
        now = time.time_ns()
        each: dict[str, Any] = {
            "trace_id": self._draw.randbytes(16), "service": service, "start_ns": now - 10**6, "end_ns": now,
        }  # fmt: skip
        if service == "desk":
            stated = {
                "langfuse.observation.input": f"When does order {self._number} come?",
                "langfuse.observation.output": f"Order {self._number} comes tomorrow.",
                "langfuse.trace.metadata.expected_outcome": f"Order {self._number} comes tomorrow.",
            }
            # What a tool returned is the source that the answer is judged by.
            looked_up = {
                "langfuse.observation.type": "tool",
                "langfuse.observation.output": f"Order {self._number}: tomorrow.",
            }
            tool = S(span_id=span(2), parent_id=span(1), name="look_up", attributes=looked_up, **each)
            return [S(span_id=span(1), attributes=stated, **each), tool]
        ran = {"gen_ai.operation.name": "invoke_agent", "output.value": "Done."}
        root = S(span_id=span(1), attributes=ran, **each)
        called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": USED}
        return [root] if fails else [root, S(span_id=span(2), parent_id=span(1), attributes=called, **each)]


@dataclass(kw_only=True)
class Rehearsal:
    """Everything that runs. ``seen``: the statuses of each service in process, each as often as it changed."""

    monitor: Running
    prometheus: Prometheus
    manager: RealAlertmanager
    provider: Provider
    traffic: Traffic
    hook: FakeReceiver
    """What the monitor's own webhook is sent."""
    behind: FakeReceiver
    """What Alertmanager sends on."""
    began_s: float = field(default_factory=time.time)
    seen: dict[str, list[str]] = field(default_factory=lambda: {service: [] for service in A_TICK})
    _scarce_s: dict[str, float] = field(default_factory=dict)

    def in_process(self) -> dict[str, str]:
        """The status of each service, as the API tells it, which is also noted."""
        standings, now_s = self.monitor.get("/v1/status")["standings"], time.monotonic()
        for each in standings:
            service, status = each["service"], each["status"]
            if each["effective_n"] < ENOUGH[service]:
                self._scarce_s[service] = now_s
            undecided = status == "insufficient_data" and now_s - self._scarce_s.get(service, 0) < SCARCE_S
            if not undecided and self.seen[service][-1:] != [status]:
                self.seen[service].append(status)
        return {each["service"]: each["status"] for each in standings}

    def course(self, expr: str, service: str, begin_s: float, end_s: float) -> list[float]:
        """What the expression answered for a service while it had enough verdicts to be decided."""
        held = f'min_over_time({effective(ALERTS["window"])}{{service="{service}"}}[{SCARCE_S}s]) >= {ENOUGH[service]}'
        found = self.prometheus.course(f"({expr}) and on (service) ({held})", begin_s, end_s)
        return [value for values in found.values() for value in values]

    def samples(self) -> dict[str, float]:
        """The effective samples in the window of each service, as the rules record them."""
        reported = self.prometheus.query(effective(ALERTS["window"]))
        return {each["metric"]["service"]: float(each["value"][1]) for each in reported}

    def in_promql(self) -> dict[str, float]:
        """The status of each service, as the rules record it."""
        return {each["metric"]["service"]: float(each["value"][1]) for each in self.prometheus.query(STATUS)}

    def stand(self, **wanted: str) -> bool:
        """Whether these services have these statuses, in process and in PromQL at once."""
        here, there = self.in_process(), self.in_promql()
        return all((here.get(s), there.get(s)) == (status, CODES[status]) for s, status in wanted.items())

    def reported(self, service: str) -> list[tuple[str, str]]:
        """(condition, turn) of what the monitor's webhook was sent about the pass rate of a service, in order."""
        alerts = [alert for got in list(self.hook.taken) for alert in got.json["alerts"]]
        return [
            (alert["condition"], alert["turn"])
            for alert in alerts
            if alert["labels"].get("service") == service and alert["condition"].startswith("pass_rate")
        ]

    def passed_on(self, *, by_prometheus: bool, **labels: str) -> list[tuple[str, str]]:
        """(alert, firing or resolved) of what Alertmanager sent on, in order: of Prometheus, or of the monitor."""
        alerts = [alert for got in list(self.behind.got) for alert in got.json["alerts"]]
        return [
            (alert["labels"]["alertname"], alert["status"])
            for alert in alerts
            if labels.items() <= alert["labels"].items() and ("job" in alert["labels"]) is by_prometheus
        ]

    def firing(self, alert: str, **labels: str) -> bool:
        """Whether Prometheus fires it."""
        wanted = {"alertname": alert, "alertstate": "firing", **labels}
        return bool(self.prometheus.query("ALERTS{" + ",".join(f'{k}="{v}"' for k, v in wanted.items()) + "}"))

    def until(self, condition: Any, otherwise: str) -> None:
        """Wait for it; statuses are noted meanwhile."""

        def holds() -> bool:
            self.in_process()
            return bool(condition())

        self.monitor.until(holds, f"{otherwise}; seen {self.seen}", seconds=90)


@contextmanager
def rehearsal(folder: Path) -> Iterator[Rehearsal]:
    """All of it, running, with healthy traffic."""
    with ExitStack() as running:
        provider = running.enter_context(Provider(judges()))
        hook, behind = running.enter_context(receiving()), running.enter_context(receiving())
        manager = running.enter_context(alertmanager(folder / "am", f"{behind.url}/"))
        monitor = Running(folder, configuration(provider, hook, manager))
        running.callback(monitor.close)
        monitor.start()
        rules = shortened(command("export", "rules", "--config", str(monitor.config)))
        target = monitor.api.removeprefix("http://")
        prometheus = Prometheus(folder, [target], rules, manager.url)
        running.callback(prometheus.close)
        prometheus.until(lambda: prometheus.query("sidejudge_build_info"), "the monitor was not scraped")
        traffic = running.enter_context(Traffic(monitor).on())
        yield Rehearsal(
            monitor=monitor, prometheus=prometheus, manager=manager, provider=provider, traffic=traffic, hook=hook,
            behind=behind,
        )  # fmt: skip


def configuration(provider: Provider, hook: FakeReceiver, manager: RealAlertmanager) -> Mapping[str, Any]:
    judge = {
        "model": MODEL, "api_base": provider.url, "api_key": "sk-fake", "retries": 0, "timeout": "5s",
        "price": {"input_usd_per_million": 1, "output_usd_per_million": 4}, "budget_usd_per_hour": 100,
    }  # fmt: skip
    return {
        "routes": [
            {"match": {"service": "desk"}, "rubrics": ["quality"]},
            {"match": {}, "rubrics": ["workflow"], "scenario": "orders"},
        ],
        "scenarios": {"orders": {"tools_should_include": [USED]}},
        "evaluators": {"judge": judge},
        "alerts": {
            **ALERTS,
            "notify": [{"webhook": {"url": hook.url, "secret": "common"}}, {"alertmanager": {"url": manager.url}}],
        },
    }


def command(*arguments: str) -> str:
    """What the command line prints."""
    called = sidejudge(*arguments, cwd=ROOT)
    called.check_returncode()
    return called.stdout


def shortened(text: str) -> str:
    """The rules with what the configuration does not say cut too: intervals, and the waits of the fleet's alerts."""
    stated = yaml.safe_load(text)
    for group in stated["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            for key in {"for", "keep_firing_for"} & rule.keys():
                if not re.fullmatch(r"\d+s", rule[key]):
                    rule[key] = f"{max(1, round(_seconds(rule[key]) / SHORTER))}s"
    return yaml.safe_dump(stated, sort_keys=False)


def _seconds(duration: str) -> int:
    size = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
    return sum(int(number) * size[unit] for number, unit in re.findall(r"(\d+)([dhms])", duration))
