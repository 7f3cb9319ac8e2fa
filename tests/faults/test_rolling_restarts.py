"""Rolling restarts under load: every trace that was acknowledged is judged, handed over and judged there, or counted.

``RESTARTS=100`` runs as many; the suite runs a few.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import httpx

from tests.monitor.runtime.test_app import ANY
from tests.otlp_requests import S, request, span, trace
from tests.running import Running

RESTARTS = int(os.environ.get("RESTARTS", "2"))
SECONDS_OF_LOAD = 0.4
BEFORE_ENDPOINTS_ARE_GONE = 0.4
"""For so long a Pod that is asked to end still gets requests, in seconds."""


class Load:
    """Sends traces one by one to whichever monitor there is; half of them never get their root."""

    def __init__(self) -> None:
        self.target = ""
        self.acknowledged: list[str] = []
        self._numbers, self._over = itertools.count(1), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with httpx.Client(timeout=5) as http:
            while not self._over.wait(0.005):
                if not self.target:
                    continue
                number = next(self._numbers)
                parent = {"parent_id": span(9)} if number % 2 else {}
                body = request([S(trace_id=trace(number), span_id=span(1), **parent)])
                try:
                    answer = http.post(f"{self.target}/v1/traces", content=body,
                                       headers={"content-type": "application/x-protobuf"})  # fmt: skip
                except httpx.HTTPError:
                    continue  # sent, and not acknowledged
                if answer.status_code == 200:
                    self.acknowledged.append(trace(number).hex())

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def test_rolling_restarts_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Each Pod has a store of its own, as with an ``emptyDir``. Every second has no time, and a gateway to go to."""
    verdicts = tmp_path / "verdicts.jsonl"
    common = {
        **ANY, "sinks": {"jsonl": {"path": str(verdicts)}}, "assembly": {"grace": "1h", "idle": "1h"},
        "sampling": {"rate": 1.0, "handover_key": "a secret of these monitors"},
    }  # fmt: skip
    (tmp_path / "gateway").mkdir()
    gateway = Running(
        tmp_path / "gateway", common | {"assembly": {"grace": "0s", "idle": "100ms", "root_wait": "0s"}}
    ).start()
    load, ends = Load(), []
    try:
        for number in range(RESTARTS):
            folder = tmp_path / f"pod-{number}"
            folder.mkdir()
            short = {"timeout": "600ms", "quiet": "0s", "to": gateway.otlp}
            pod = Running(folder, common | {"drain": short if number % 2 else {"timeout": "10s", "quiet": "100ms"}})
            pod.start()
            load.target = pod.otlp
            threading.Event().wait(SECONDS_OF_LOAD)
            pod.process.send_signal(signal.SIGTERM)
            threading.Event().wait(BEFORE_ENDPOINTS_ARE_GONE)
            load.target = ""
            assert pod.process.wait(timeout=20) == 0
            ends.append(pod.logged()[-1])
            pod.close()
        load.end()
        gateway.until(lambda: gateway.outcomes()["open"] == 0, "the gateway did not end all of them")
        judged_there = sum(gateway.outcomes()["ended"].values())
    finally:
        load.end()
        gateway.stop()
        gateway.close()
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    judged = Counter(line["trace_id"] for line in lines)
    assert [line for line, count in judged.items() if count > 1] == [], "nothing was judged twice"
    lost = [end["lost_traces"] for end in ends]
    assert sum(lost[::2]) == 0, "the grace period allowed all of it"
    assert sum(end["handed_over_traces"] for end in ends) <= judged_there
    assert judged_there > 0
    # A gateway that is slow to answer has taken what its sender counts as lost; nothing is missing that nobody counts.
    assert len(set(load.acknowledged) - judged.keys()) <= sum(lost)
    assert len(load.acknowledged) >= 10 * RESTARTS
    stated = f"{RESTARTS} restarts: {len(load.acknowledged)} traces acknowledged, {len(judged)} judged, "
    sys.stdout.write(f"{stated}{judged_there} of them after a handover, {sum(lost)} lost\n")
