"""The campaign: kills, broken disks, a broken Langfuse and hostile callers at once, and what must hold all the same.

    python -m tests.faults.campaign --minutes 30 --seed 7

draws everything from the seed, looks at the monitor from outside, and prints the seed of a failure. What must hold:

* each trace that was acknowledged, and not shed under load, has its verdicts, each once, and each score of theirs is
  in Langfuse with its value;
* the outcomes balance: seen = open + ended;
* nothing is answered with a 5xx other than 503; the process ends only when it is killed;
* memory stays under the bound; ``/livez`` answers; no contents are in the log or in the metrics;
* an attacker with a budget (``attacker.py``) is shown no contents, and none of his traces weighs more than one;
* at last, bytes of the store are damaged: what can be read of it is recovered by a start, and the damaged file is kept.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from sidejudge.integrations.otlp.wire.tracestate import randomness, threshold
from sidejudge.integrations.store.archive import read_traces
from sidejudge.monitor.config.load import load
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.runtime.memory_bound import memory_bound
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.faults.campaign import hostile
from tests.faults.campaign.attacker import SERVICE, Attacker, Budget
from tests.faults.campaign.fuzz import GUIDED, TARGETS
from tests.faults.test_killed_in_traffic import trace_id_of
from tests.faults.test_langfuse_killed import expected, stored
from tests.running import Running

HERE = Path(__file__).parent
RECORDED = HERE.parents[1] / "data" / "otlp"
FUZZING_S = 30
"""Seconds of one round of mutations of one target; the targets take turns."""
CALLS_S = 20
"""Seconds in which the API is called in every way that its schema allows, and in some that it does not."""
SHOWN_EVERY_S = 30
LIVEZ_S = 0.1
SETTLE_S = 240
"""How long scores may take to reach Langfuse once nothing is broken any more."""
SHED_S = 150
"""Seconds in which a lowered rate is remembered as traces begin (60), and by which the clocks of two traces differ."""
CLOCK_S = (-60, -5, 0, 5, 60)
"""Seconds by which the clock is off. A trace that came while it was ahead closes that much later once it is right."""
ACTIONS = (
    "kill", "kill", "kill", "end", "disk EIO 20", "disk ENOSPC 60", "disk SLOW 30", "langfuse", "calm", "clock", "halt",
)  # fmt: skip
CONFIG = {
    "routes": [{"match": {"metadata.task": "qa"}, "rubrics": ["qa"]}, {"rubrics": ["run_health"]}],
    "assembly": {"grace": "100ms", "idle": "1s", "root_wait": "0s"},  # mutations cost traces their roots
}


@dataclass
class Seen:
    """What the campaign counted, and what broke a promise."""

    acknowledged: dict[str, float] = field(default_factory=dict)
    """When each trace was, in seconds since the epoch of a clock that is right."""
    statuses: Counter[int] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    livez_s: list[float] = field(default_factory=list)
    memory_mib: int = 0
    fuzzed: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    recovered: int | None = None
    """Verdicts of the damaged store."""
    broken: list[str] = field(default_factory=list)


class Campaign:
    """One monitor under attack. ``run`` returns what was seen; the folder holds the log and the store."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        show: Callable[[str], None] = print,
        *,
        generated: bool = True,
        budget: Budget | None = None,
    ) -> None:
        """Without ``generated`` inputs nothing is mutated by coverage, and the API's schema is not looked at."""
        self._generated = generated
        self._dice, self._show, self._folder = random.Random(seed), show, folder
        self.seen = Seen()
        self._stop = threading.Event()
        self._up = threading.Event()
        self._lock = threading.Lock()
        self._seed = seed
        self._langfuse_broken = False
        self._disk = disk_faults(folder)
        self.attacker = Attacker(seed + 3, budget or Budget(), self.seen.broken.append)

    def run(self, seconds: float) -> Seen:
        """Attack for this long, then let the monitor settle and look at what it has."""
        with FakeLangfuse(Mode.DUAL) as fake:
            fake.standing_fault = self._langfuse_fault(fake)
            keys = {
                "public_key": PUBLIC_KEY,
                "secret_key": SECRET_KEY,
                "requests_per_minute": 100_000,
                "timeout": "500ms",
                "scores": "all",
            }
            sinks = {"langfuse": {"base_url": fake.base_url, **keys}}
            monitor = Running(self._folder, {**CONFIG, "sinks": sinks}, environ=self._disk.environ)
            monitor.start()
            self._up.set()
            attackers = [
                *(threading.Thread(target=self._send, args=(monitor, n)) for n in range(2)),
                threading.Thread(target=self._harass, args=(monitor,)),
                threading.Thread(target=self._watch, args=(monitor,)),
                *self.attacker.threads(monitor.api, self._stop),
            ]
            if self._generated:
                attackers.append(threading.Thread(target=self._fuzz, args=(seconds,)))
            for attacker in attackers:
                attacker.start()
            end, shown = time.monotonic() + seconds, seconds
            try:
                while time.monotonic() < end:
                    self._act(monitor)
                    left = max(0.0, end - time.monotonic())
                    if shown - left > SHOWN_EVERY_S or not left:
                        shown, done = left, dict(self.seen.actions)
                        self._show(f"{left:4.0f} s left, {len(self.seen.acknowledged)} acknowledged, {done}")
            finally:
                self._stop.set()
                for attacker in attackers:
                    attacker.join()
            self._langfuse_broken = False
            self._disk.set(None)
            self._disk.shift(0)
            try:
                self._verify(monitor, fake)
                if self._generated:
                    self._call(monitor, min(CALLS_S, seconds))
                self._damage(monitor)
            finally:
                monitor.close()
        return self.seen

    # What goes wrong

    def _act(self, monitor: Running) -> None:
        """One action of the kind that operators and machines do to a process."""
        action = self._dice.choice(ACTIONS)
        self.seen.actions[action] += 1
        time.sleep(self._dice.uniform(0.3, 2.0))
        kind, _, order = action.partition(" ")
        if kind == "disk":
            self._disk.set(order)
            time.sleep(self._dice.uniform(0.5, 2.0))
            self._disk.set(None)
        elif kind == "langfuse":
            self._langfuse_broken = not self._langfuse_broken
        elif kind == "clock":
            self._disk.shift(self._dice.choice(CLOCK_S))
        elif kind == "halt":
            self._up.clear()
            assert monitor.process is not None
            monitor.process.send_signal(signal.SIGSTOP)
            time.sleep(self._dice.uniform(1.0, 5.0))
            monitor.process.send_signal(signal.SIGCONT)
            self._up.set()
        elif kind in ("kill", "end"):
            number = signal.SIGKILL if kind == "kill" else signal.SIGTERM
            self._up.clear()
            code = monitor.stop(number)
            if code not in (0, -number):
                self.seen.broken.append(f"{action}: the process ended with {code}")
            monitor.start()
            self._up.set()

    def _langfuse_fault(self, fake: FakeLangfuse):
        dice = random.Random(self._seed + 1)
        kinds = [
            faults.store_away(), faults.proxy_page(), faults.resets(), faults.lost_answer(fake), faults.hangs(),
            faults.rate_limited(1, 10**6),
        ]  # fmt: skip
        return lambda request: dice.choice(kinds)(request) if self._langfuse_broken and dice.random() < 0.5 else None

    def _harass(self, monitor: Running) -> None:
        dice = random.Random(self._seed + 2)
        attacks = hostile.requests(dice, hostile.recordings(RECORDED))
        with httpx.Client(timeout=10) as client:
            while not self._stop.is_set():
                self._up.wait(1)
                if dice.random() < 0.1:
                    hostile.misbehave(dice, monitor.otlp)
                    continue
                body, headers = self.attacker.request(dice) if dice.random() < 0.1 else next(attacks)
                with contextlib.suppress(httpx.HTTPError):
                    path = headers.pop("x-path", "/v1/traces")
                    self._count(client.post(monitor.otlp + path, content=body, headers=headers))

    def _fuzz(self, seconds: float) -> None:
        """Mutations of what reads untrusted bytes, one target after the other, in processes of their own."""
        end = time.monotonic() + seconds
        turn = 0
        while not self._stop.is_set() and (left := end - time.monotonic()) > 1:
            target = sorted(TARGETS)[turn % len(TARGETS)]
            command = ["nice", "-n", "10", sys.executable, "-m", "tests.faults.campaign.fuzz", "--target", target]
            command += ["--seconds", str(int(min(left, FUZZING_S))), "--seed", str(self._seed * 1000 + turn)]
            ran = subprocess.run([*command, "--keep", str(self._folder)], capture_output=True, text=True, check=False)
            found = re.search(r"number_of_executed_units: (\d+)|^(\d+) inputs", ran.stdout + ran.stderr, re.MULTILINE)
            self.seen.fuzzed[target] += int(next(filter(None, found.groups()))) if found else 0
            if ran.returncode:
                self.seen.broken.append(f"mutations of {target} broke: {(ran.stdout + ran.stderr)[-2000:]}")
            turn += 1

    def _call(self, monitor: Running, seconds: float) -> None:
        """Every operation of the API with arguments of every kind; only with the extra ``faults``."""
        if importlib.util.find_spec("schemathesis") is None:
            return
        schema = self._folder / "openapi.json"
        schema.write_text(json.dumps(monitor.http.get(monitor.api + "/openapi.json").json()))
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(schema), "--url", monitor.api]
        command += [
            "--checks",
            "not_a_server_error",
            "--max-time",
            str(max(1, int(seconds))),
            "--seed",
            str(self._seed),
        ]
        command += ["--continue-on-failure", "--no-color"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self._folder)
        found = re.search(r"(\d+) generated", ran.stdout)
        self.seen.calls = int(found[1]) if found else 0
        if ran.returncode or not self.seen.calls:
            self.seen.broken.append(f"the API broke: {(ran.stdout + ran.stderr)[-3000:]}")

    # What is sent and watched

    def _send(self, monitor: Running, number: int) -> None:
        """Honest traffic: each trace is sent again until it is acknowledged, as an exporter does."""
        traffic = SampleTraffic(self._seed * 10 + number)
        with httpx.Client(timeout=10) as client:
            while not self._stop.is_set():
                body = traffic.next(time.time_ns(), wrong=0.2).body
                while not self._stop.is_set():
                    with contextlib.suppress(httpx.HTTPError):
                        answer = client.post(
                            monitor.otlp + "/v1/traces", content=body, headers={"content-type": hostile.PROTOBUF}
                        )
                        self._count(answer)
                        if answer.status_code == 200:
                            with self._lock:
                                self.seen.acknowledged[trace_id_of(body)] = time.time()
                            break
                    time.sleep(0.05)
                time.sleep(0.02)

    def _count(self, answer: httpx.Response) -> None:
        with self._lock:
            self.seen.statuses[answer.status_code] += 1
            if answer.status_code >= 500 and answer.status_code != 503:
                self.seen.broken.append(f"answered {answer.status_code}: {answer.text[:100]}")

    def _watch(self, monitor: Running) -> None:
        """The probe, the balance of outcomes, and memory, several times a second."""
        with httpx.Client(timeout=30) as client:
            while not self._stop.is_set():
                self._up.wait(1)
                began = time.monotonic()
                with contextlib.suppress(httpx.HTTPError):
                    if client.get(monitor.api + "/livez").status_code == 200 and self._up.is_set():
                        self.seen.livez_s.append(time.monotonic() - began)
                    answer = client.get(monitor.api + "/v1/status")
                    self._count(answer)
                    if answer.status_code != 200:
                        continue
                    outcomes = answer.json()["outcomes"]
                    if outcomes["seen"] != outcomes["open"] + sum(outcomes["ended"].values()):
                        self.seen.broken.append(f"the outcomes do not balance: {outcomes}")
                self.seen.memory_mib = max(self.seen.memory_mib, memory_mib(monitor))
                time.sleep(0.2)

    # What must hold

    def _verify(self, monitor: Running, fake: FakeLangfuse) -> None:
        broken = self.seen.broken
        try:
            monitor.until(lambda: monitor.outcomes()["open"] == 0, "traces stayed open", seconds=180 + max(CLOCK_S))
        except AssertionError as error:
            broken.append(str(error))
        verdicts = monitor.verdicts()
        counted = Counter((verdict["trace_id"], verdict["rubric"]) for verdict in verdicts)
        judged = {trace_id for trace_id, _ in counted}
        shed = read_traces(self._folder / "state.sqlite", reason="shed", service=None, limit=10**6)
        lost = unexplained(self.seen.acknowledged, judged, verdicts, shed)
        doubled = [key for key, count in counted.items() if count > 1]
        his = {each["sampling_probability"] for each in verdicts if each["service"] == SERVICE}
        drawn = {1.0} | {each["sampling_probability"] for each in verdicts if each["service"] != SERVICE and shed}
        if his and min(his) < min(drawn):
            broken.append(f"an attacker's trace weighs more than others: it is drawn with {min(his)}")
        if lost:
            broken.append(f"{len(lost)} acknowledged traces have no verdict: {sorted(lost)[:3]}")
        if doubled:
            broken.append(f"{len(doubled)} verdicts are there twice: {doubled[:3]}")
        missing = self._unsent(monitor, fake)
        if missing:
            broken.append(f"{len(missing)} scores are not in Langfuse: {sorted(missing, key=str)[:2]}")
        bound = sum(part.max_bytes for part in memory_bound(load(monitor.config, {}))) >> 20
        if self.seen.memory_mib > bound:
            broken.append(f"memory reached {self.seen.memory_mib} MiB, the bound is {bound}")
        metrics = monitor.http.get(monitor.api + "/metrics").text
        for where in (monitor.log_file.read_text(errors="replace"), metrics):
            if hostile.CANARY in where:
                broken.append("contents are in the log or in the metrics")

    @staticmethod
    def _unsent(monitor: Running, fake: FakeLangfuse) -> set[tuple[object, object]]:
        """Scores that do not come to Langfuse, however long they take while they do come."""
        end, least = time.monotonic() + SETTLE_S, sys.maxsize
        while time.monotonic() < end:
            (export,) = monitor.get("/v1/status")["exports"]
            left = export["waiting"]
            if not left:  # to compare them all takes as long as to send some hundred
                missing = set(expected(monitor).items() - stored(fake).items())
                if not missing:
                    return missing
                left = len(missing)
            if left < least:  # a slow machine is behind, and getting on
                least, end = left, time.monotonic() + SETTLE_S
            time.sleep(1)
        return set(expected(monitor).items() - stored(fake).items())

    def _damage(self, monitor: Running) -> None:
        """Bytes of the store change while the monitor is down; it starts all the same."""
        store = self._folder / "state.sqlite"
        monitor.stop()
        monitor.configure(store={"path": str(store), "on_damage": "recover"})
        held = bytearray(store.read_bytes())
        for _ in range(self.attacker.budget.flipped_bytes):
            held[self._dice.randrange(4096, len(held))] ^= 1 << self._dice.randrange(8)
        store.write_bytes(held)
        try:
            monitor.start()
            recovered = self._recovered(monitor)
        except (AssertionError, httpx.HTTPError) as error:
            self.seen.broken.append(f"a damaged store keeps the monitor from starting or answering: {error}")
            return
        self.seen.recovered = recovered

    @staticmethod
    def _recovered(monitor: Running) -> int:
        """How many verdicts there are; a slow machine is asked again."""
        end = time.monotonic() + SETTLE_S
        while True:
            try:
                return len(monitor.verdicts())
            except httpx.TimeoutException:
                if time.monotonic() >= end:
                    raise


class DiskFaults:
    """A library that makes the store's disk fail and the clock jump; without a C compiler neither happens."""

    def __init__(self, library: Path | None, control: Path) -> None:
        self._control, self._clock = control, control.with_name("clock-offset")
        self._clock.write_bytes(bytes(8))
        self.environ = {} if library is None else {
            "LD_PRELOAD": str(library), "DISK_FAULTS": str(control), "CLOCK_OFFSET": str(self._clock),
        }  # fmt: skip

    def shift(self, seconds: int) -> None:
        """Have the monitor's clock be off by this from now on."""
        with self._clock.open("r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    def set(self, order: str | None) -> None:
        if order is None:
            self._control.unlink(missing_ok=True)
        else:
            self._control.write_text(order)


def disk_faults(folder: Path) -> DiskFaults:
    compiler = shutil.which("cc")
    library = folder / "disk.so"
    if compiler is None or sys.platform != "linux":
        return DiskFaults(None, folder / "disk-faults")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(HERE / "disk.c"), "-ldl"], check=True)
    return DiskFaults(library, folder / "disk-faults")


def memory_mib(monitor: Running) -> int:
    """The process's resident memory in MiB; 0 while there is no process."""
    with contextlib.suppress(OSError, AttributeError):
        pages = Path(f"/proc/{monitor.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") >> 20
    return 0


def unexplained(
    acknowledged: Mapping[str, float],
    judged: AbstractSet[str],
    verdicts: Iterable[Mapping[str, Any]],
    shed: Iterable[Mapping[str, Any]],
) -> set[str]:
    """Acknowledged traces that have no verdict and were not shed under load.

    A trace that is shed as it begins leaves a count and no row. Others show what was shed about then: one that was shed
    as it closed lay below the threshold of that moment, and a verdict's probability states the threshold that its trace
    reached. So a trace without a row was shed if its randomness lies below a threshold that was in force about then.
    """
    closed = {trace["trace_id"] for trace in shed}
    limits = [(trace["closed_ns"] / 1e9, randomness(bytes.fromhex(trace["trace_id"])) + 1) for trace in shed]
    limits += [
        (verdict["closed_ns"] / 1e9, threshold(verdict["sampling_probability"]))
        for verdict in verdicts
        if (verdict["sampling_probability"] or 1.0) < 1
    ]
    return {
        trace_id
        for trace_id, at_s in acknowledged.items()
        if trace_id not in judged
        and trace_id not in closed
        and not any(
            abs(closed_s - at_s) < SHED_S and randomness(bytes.fromhex(trace_id)) < limit for closed_s, limit in limits
        )
    }


def report(seen: Seen, seed: int, attacker: Attacker | None = None) -> str:
    """What was seen, for people."""
    probes = sorted(seen.livez_s) or [0.0]
    statuses = ", ".join(f"{code}: {count}" for code, count in sorted(seen.statuses.items()))
    actions = ", ".join(f"{name}: {count}" for name, count in sorted(seen.actions.items()))
    p99_ms = probes[max(0, int(len(probes) * 0.99) - 1)] * 1000
    slow = sum(s > LIVEZ_S for s in probes)
    requests = sum(seen.statuses.values())
    lines = [
        f"seed {seed}: {len(seen.acknowledged)} traces acknowledged, {requests} requests ({statuses})",
        f"actions: {actions}",
        f"memory: at most {seen.memory_mib} MiB",
        f"mutated inputs: {sum(seen.fuzzed.values())} ({dict(seen.fuzzed)}), guided by coverage: {GUIDED}",
        f"generated calls of the API: {seen.calls}",
        f"verdicts of the damaged store: {seen.recovered}",
        *(
            [f"attacker: {attacker.asked} answers, {attacker.unread} left unread, {attacker.budget}"]
            if attacker
            else []
        ),
        f"/livez: p99 {p99_ms:.0f} ms, {slow} of {len(probes)} over {LIVEZ_S * 1000:.0f} ms",
    ]
    kinds = Counter(line.partition(":")[0] for line in seen.broken)
    for kind, count in kinds.items():
        first = next(line for line in seen.broken if line.startswith(kind))
        lines.append(f"BROKEN ({count} times) {first}")
    return "\n".join(lines)
