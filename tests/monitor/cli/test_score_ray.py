"""``sidejudge score --engine ray``: the same file as one process writes, though a worker and the driver are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import Forked, environment, sidejudge
from tests.monitor.cli.test_score import qa_case, score, verdicts, written
from tests.monitor.cli.test_score_workers import remarks
from tests.needs import RAY
from tests.running import free_port

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "sidejudge-tests-" + 32 * "0"}
"""What processes of a cluster show each other; a cluster of this machine makes its own where none is given."""


@pytest.fixture(scope="module")
def head() -> Iterator[tuple[str, int]]:
    """A cluster of this machine: its address, and the process that holds it."""
    RAY.path()
    port = free_port()
    command = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", f"--port={port}", "--num-cpus=2"]
    process = subprocess.Popen(
        [*command, "--include-dashboard=false", "--disable-usage-stats"],
        env=environment() | TOKEN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"127.0.0.1:{port}", process.pid
    finally:
        below = descendants(process.pid)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pid in below:  # what Ray leaves to end by itself
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["Z", "0"]


def alive(pid: int) -> bool:
    return stat(pid)[0] != "Z"


def descendants(pid: int) -> list[int]:
    parents = {int(each.name): int(stat(int(each.name))[1]) for each in Path("/proc").iterdir() if each.name.isdigit()}
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def judging(pid: int) -> list[int]:
    """The workers of a cluster that judge."""
    found = []
    for each in descendants(pid):
        try:
            if Path(f"/proc/{each}/cmdline").read_bytes().startswith(b"ray::_work"):
                found.append(each)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def grown(run: Forked, out: Path, size: int) -> None:
    while run.poll() is None and (out.stat().st_size if out.exists() else 0) <= size:
        time.sleep(0.005)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc; run on Linux")
def test_ray_writes_what_one_process_writes_though_a_worker_and_the_driver_are_killed(head, tmp_path: Path) -> None:
    address, pid = head
    cases: list[object] = [qa_case(n, right=n % 3 != 0) for n in range(3000)]
    cases[1], cases[400], cases[900] = "{not json", {"case_id": "no output"}, qa_case(7)
    path, whole = written(tmp_path / "cases.jsonl", cases), tmp_path / "whole.jsonl"
    stated = score(path, "--out", whole).stderr
    out, report = tmp_path / "v.jsonl", tmp_path / "report"
    arguments = ("score", path, "--out", out, "--engine", "ray", "--address", address)

    run = Forked(*arguments, env=TOKEN, stderr=report)
    grown(run, out, 20_000)  # the first case is judged by the driver, the others by the workers
    run.kill()
    run.wait(30)
    assert 20_000 < out.stat().st_size < whole.stat().st_size, report.read_text()

    report.unlink()
    run = Forked(*arguments, env=TOKEN, stderr=report)
    grown(run, out, out.stat().st_size)
    killed = judging(pid)
    assert killed
    os.kill(killed[0], signal.SIGKILL)
    assert run.wait(100) == 1, "two lines are no cases"
    assert verdicts(out) == verdicts(whole)
    assert remarks(report.read_text()) == remarks(stated)


@pytest.mark.parametrize(
    ("options", "code", "cause"),
    [
        (("--address", "auto"), 2, "--address: is of a Ray cluster"),
        (
            ("--engine", "ray", "--config", "judge.yaml"),
            2,
            "--engine ray: a judge's budget and rate limits are held",
        ),
    ],
)
def test_what_ray_is_not_for_is_refused(tmp_path: Path, options: tuple[str, ...], code: int, cause: str) -> None:
    (tmp_path / "judge.yaml").write_text("evaluators: {judge: {model: openai/m}}")
    cases = written(tmp_path / "c.jsonl", [qa_case(1)])
    done = sidejudge("score", cases, "--out", "v.jsonl", *options, cwd=tmp_path)
    assert done.returncode == code
    assert cause in done.stderr
    assert not (tmp_path / "v.jsonl").exists()
