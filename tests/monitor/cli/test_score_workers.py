"""``sidejudge score --workers``: the same file as one process writes, whatever becomes of the workers."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from sidejudge.monitor.config import resolve
from sidejudge.monitor.offline.score.case_lines import NumberedLine
from sidejudge.monitor.offline.score.request import OtherConfigError, ScoreRequest, fingerprint
from sidejudge.monitor.offline.score.run import ChunkJudge
from tests.forked import Forked
from tests.monitor.cli.test_score import qa_case, score, verdicts
from tests.needs import SENTENCE_TRANSFORMERS
from tests.verdict_lines import json_lines


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> tuple[Path, Path, str]:
    """Cases with every kind of remark on them, the verdicts of one process, and what it reports."""
    folder = tmp_path_factory.mktemp("many")
    cases: list[object] = [qa_case(n, right=n % 3 != 0) for n in range(2000)]
    cases[1], cases[400] = "{not json", {"case_id": "no output"}
    for n in (3, 900, 1200):
        cases[n] = {**qa_case(7), "wrong_field": n}
    cases[950] = {"case_id": "p", "task": "poetry", "model_output": "x"}
    path, whole = json_lines(folder / "cases.jsonl", cases), folder / "whole.jsonl"
    return path, whole, score(path, "--out", whole).stderr


def children(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(each) for each in found if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
    except FileNotFoundError:
        return []


def begun(process: Forked, out: Path) -> list[int]:
    """The workers of a run that has written verdicts of theirs; the run's own process judges the first case."""
    while process.poll() is None and not (out.exists() and out.stat().st_size > 100_000):
        time.sleep(0.002)
    return children(process.pid)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def remarks(report: str) -> list[str]:
    """A report without what depends on how the run was cut, and on how long it took."""
    return [line for line in report.splitlines() if "stood already" not in line and not line.endswith(" bytes")]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc; run on Linux")
def test_workers_write_what_one_process_writes_and_go_on_after_any_kill(many, tmp_path: Path) -> None:
    cases, whole, stated = many
    out, report = tmp_path / "v.jsonl", tmp_path / "stderr"
    arguments = ("score", cases, "--out", out, "--workers", 2)

    run = Forked(*arguments, stderr=report)
    workers = begun(run, out)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    assert run.wait(30) == 3
    assert "--workers: a worker process has ended" in report.read_text()
    assert "resume by the same command" in report.read_text()
    first = out.stat().st_size
    assert 0 < first < whole.stat().st_size

    run = Forked(*arguments)
    while run.poll() is None and out.stat().st_size <= first:
        time.sleep(0.002)
    workers = children(run.pid)
    run.kill()
    run.wait(30)
    until = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(alive, workers)), "a worker has outlived the run"

    done = score(cases, "--out", out, "--workers", 2)
    assert done.returncode == 1
    assert verdicts(out) == verdicts(whole)
    assert remarks(done.stderr) == remarks(stated)


@pytest.mark.parametrize(
    ("evaluators", "cause"),
    [
        ("judge: {model: openai/m}", "a judge's budget and rate limits are held by one process"),
        pytest.param(
            "embedding: {model: openai/e}", "embeddings are computed by one process", marks=SENTENCE_TRANSFORMERS.mark
        ),
    ],
)
def test_what_one_process_must_ask_is_refused(tmp_path: Path, evaluators: str, cause: str) -> None:
    (tmp_path / "c.yaml").write_text(f"evaluators: {{{evaluators}}}")
    cases, out = json_lines(tmp_path / "c.jsonl", [qa_case(1)]), tmp_path / "v.jsonl"
    done = score(cases, "--out", out, "--workers", 2, "--config", tmp_path / "c.yaml")
    assert done.returncode == 2
    assert f"--workers: {cause}" in done.stderr
    assert not out.exists()


def test_a_worker_that_reads_another_configuration_is_refused(tmp_path: Path) -> None:
    """Declared rubrics travel as their file; one that changes in between must not mix two rubrics in one file."""
    config = tmp_path / "c.yaml"
    config.write_text("rubrics: {city: {metrics: [{id: right, check: {contains: Berlin}, weight: 1}]}}")
    settings = resolve(config, {}).config
    request = ScoreRequest(config=config, fingerprint=fingerprint(settings), chosen=("city",))
    case = json.dumps({"case_id": "a", "model_output": "Berlin"}).encode()
    lines = [NumberedLine(1, case, len(case))]
    judged = ChunkJudge(request)(lines)
    assert json.loads(judged.verdicts)["passed"] is True

    config.write_text(config.read_text().replace("Berlin", "Paris"))
    with pytest.raises(OtherConfigError, match="has changed since the run began"):
        ChunkJudge(request)(lines)
    config.write_text("rubrics: [")
    with pytest.raises(OtherConfigError, match="cannot be read by a worker"):
        ChunkJudge(request)(lines)
