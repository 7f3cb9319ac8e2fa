"""``--engine ray``: the same verdicts and figures as one process gives, whatever becomes of driver, workers and nodes.

One real cluster of two nodes serves all tests. Its object store is full from the start, so what is sent is spilled.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.fakes.judge import judges
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.fakes.openai import Act, Provider, Seen, embeds, page, states, unauthorised
from tests.forked import Forked, environment, sidejudge
from tests.monitor.cli.test_score import qa_case, score, verdicts
from tests.monitor.cli.test_score_workers import alive, remarks
from tests.needs import LITELLM, MUSE, RAY
from tests.running import free_port
from tests.verdict_lines import json_lines, verdict_line

pytestmark = [
    RAY.mark, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc; run on Linux"),
]  # fmt: skip
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "sidejudge-tests-" + 32 * "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""What processes of a cluster show each other; a cluster of this machine makes its own where none is given."""
FILL = """
import sys, time, ray
ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
held = [ray.put(bytes(8 << 20)) for _ in range(9)]
print("full", flush=True)
time.sleep(600)
"""


@dataclass
class Cluster:
    """The address, the process that holds the head, and the one that holds another node."""

    address: str
    head: int
    node: int


def started(*options: str) -> subprocess.Popen[bytes]:
    ray = Path(sys.executable).with_name("ray")
    store = "--object-store-memory=80000000"
    return subprocess.Popen(
        [ray, "start", "--block", "--num-cpus=1", store, "--disable-usage-stats", *options],
        env=environment() | TOKEN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def listening(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the head has ended")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as found:
        yield found


@contextmanager
def running() -> Iterator[Cluster]:
    address = f"127.0.0.1:{(port := free_port())}"
    processes = [started("--head", f"--port={port}", "--include-dashboard=false")]
    try:
        listening(port, processes[0])
        processes.append(started(f"--address={address}"))
        filling = [sys.executable, "-c", FILL, address]
        processes.append(subprocess.Popen(filling, env=environment() | TOKEN, stdout=subprocess.PIPE))
        assert processes[2].stdout is not None
        assert processes[2].stdout.readline() == b"full\n"
        yield Cluster(address, processes[0].pid, processes[1].pid)
    finally:
        for process in processes:
            ended(process.pid)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["Z", "0"]


def descendants(pid: int) -> list[int]:
    parents = {int(each.name): int(stat(int(each.name))[1]) for each in Path("/proc").iterdir() if each.name.isdigit()}
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def ended(pid: int) -> None:
    """Kill a process and all below it, as the end of a machine does."""
    for each in [pid, *descendants(pid)]:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue


def working(pid: int, name: bytes = b"ray::_done") -> list[int]:
    """The processes of a node that work on pieces, or are actors of that name."""
    found = []
    for each in descendants(pid):
        try:
            if Path(f"/proc/{each}/cmdline").read_bytes().startswith(name):
                found.append(each)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def grown(run: Forked, out: Path, size: int) -> None:
    while run.poll() is None and (out.stat().st_size if out.exists() else 0) <= size:
        time.sleep(0.005)


CONFIG = """
evaluators:
  judge: {{model: openai/judge-2026-01-01, api_base: "{url}", api_key: sk-test, concurrency: 4}}
rubrics:
  own:
    metrics:
      - {{id: way, check: {{contains: way}}, weight: 0.5}}
      - {{id: polite, ask: "Is {{{{output}}}} polite to who wrote {{{{input}}}}?", weight: 0.5}}
"""


def answered(seen: Seen) -> Act:
    """An answer that depends on what is asked; that about one case takes longer than all others together."""
    stated = seen.messages[-1]["content"]
    ids = re.findall(r"^id: (\S+)\nmetric: (\S+)", stated, re.MULTILINE)
    found = [{"id": id_, "metric": metric, "answer": "way 1" in stated, "reason": "r"} for id_, metric in ids]
    return states(json.dumps({"answers": found}), delay_s=3.0 if "way 35." in stated else 0.01)(seen)


@LITELLM.mark
def test_one_judge_serves_all_workers_with_one_cache_and_a_slow_case_holds_up_no_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    cases = [{"case_id": f"c{n}", "input": "where?", "model_output": f"On its way {n % 110}."} for n in range(120)]
    path, config = json_lines(tmp_path / "cases.jsonl", cases), tmp_path / "c.yaml"
    found = {}
    for name, options in (("one", ()), ("ray", ("--engine", "ray", "--address", cluster.address))):
        seen: dict[float, str] = {}

        def noted(each: Seen, seen: dict[float, str] = seen) -> Act:
            seen[time.monotonic()] = each.messages[-1]["content"]
            return answered(each)

        with Provider(noted) as provider:
            config.write_text(CONFIG.format(url=provider.url))
            out, report = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.report"
            chosen = ("--rubric", "own", "--config", config, *options)
            run = Forked("score", path, "--out", out, *chosen, env=TOKEN, stderr=report)
            assert run.wait(100) == 0, report.read_text()
        assert len(seen) == 110, "each question is asked once in the whole run"
        slow = next(at for at, text in seen.items() if "way 35." in text)
        if name == "ray" and alive(cluster.node):
            assert sum(slow < at < slow + 3 for at in seen) >= 10, "the other worker goes on"
        found[name] = [(each["case_id"], each["passed"], each["composite"]) for each in verdicts(out)]
        assert "judge: 110 requests" in report.read_text()
    assert found["ray"] == found["one"]


def test_figures_of_verdicts_are_the_same(cluster: Cluster, tmp_path: Path) -> None:
    lines = [verdict_line(f"c{n}", composite=n % 7 / 7, sampling_probability=1 / (n % 5 + 3)) for n in range(3000)]
    path = json_lines(tmp_path / "v.jsonl", lines)
    here = sidejudge("scorecard", f"m={path}", "--format", "json")
    there = tmp_path / "there.json"
    run = Forked(
        "scorecard", f"m={path}", "--format", "json", "--out", there, "--engine", "ray", "--address", cluster.address,
        env=TOKEN,
    )  # fmt: skip
    assert run.wait(60) == 0
    assert there.read_text() == here.stdout


def test_the_file_of_verdicts_is_the_same_though_driver_worker_and_node_are_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    cases: list[object] = [qa_case(n, right=n % 3 != 0) for n in range(3000)]
    cases[1], cases[400], cases[900] = "{not json", {"case_id": "no output"}, qa_case(7)
    path, whole = json_lines(tmp_path / "cases.jsonl", cases), tmp_path / "whole.jsonl"
    stated = score(path, "--out", whole).stderr
    out, report = tmp_path / "v.jsonl", tmp_path / "report"
    arguments = ("score", path, "--out", out, "--engine", "ray", "--address", cluster.address)

    run = Forked(*arguments, env=TOKEN, stderr=report)
    grown(run, out, 20_000)  # the first case is judged by the driver, the others by the workers
    run.kill()
    run.wait(30)
    assert 20_000 < out.stat().st_size < whole.stat().st_size, report.read_text()

    report.unlink()
    run = Forked(*arguments, env=TOKEN, stderr=report)
    grown(run, out, out.stat().st_size)
    killed: list[int] = []
    while run.poll() is None and not (killed := working(cluster.head) + working(cluster.node)):
        time.sleep(0.01)
    assert killed
    os.kill(killed[0], signal.SIGKILL)
    ended(cluster.node)
    assert run.wait(100) == 1, report.read_text()  # two lines are no cases
    assert not alive(cluster.node)
    assert verdicts(out) == verdicts(whole)
    assert remarks(report.read_text()) == remarks(stated)


@MUSE.mark
def test_a_backfill_with_embeddings_of_the_cluster_writes_the_scores_of_one_process_though_driver_and_model_are_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    traffic, found = SampleTraffic(1), {}
    traces = [decode_spans(traffic.next((1_795_000_000 + n) * 10**9, wrong=0.3).body) for n in range(30)]
    for name, options in (("one", ()), ("ray", ("--engine", "ray", "--address", cluster.address))):
        with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as langfuse:
            for spans in traces:
                observations_of(langfuse).put(*rows_of(spans))
            config = tmp_path / f"{name}.yaml"
            keys = {"base_url": langfuse.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "scores": "all"}
            config.write_text(json.dumps({
                "sampling": {"rate": 1.0}, "sinks": {"langfuse": {**keys, "requests_per_minute": 900}},
                "evaluators": {"embedding": {"model": "muse"}}, "routes": [{"rubrics": ["answer", "entity", "qa"]}],
            }))  # fmt: skip
            report = tmp_path / f"{name}.report"
            arguments = ("--from", "2026-11-01", "--to", "2026-12-01", "--yes", "--state", tmp_path / name, *options)
            run = Forked("backfill", config, *arguments, env=TOKEN, stderr=report)
            if name == "ray":
                while run.poll() is None and not langfuse.scores.stored():
                    time.sleep(0.005)
                run.kill()
                run.wait(30)
                before = len(langfuse.scores.stored())
                assert before, report.read_text()
                run = Forked("backfill", config, *arguments, env=TOKEN, stderr=report)
                while run.poll() is None and len(langfuse.scores.stored()) == before:
                    time.sleep(0.005)
                os.kill(working(cluster.head, b"ray::EmbeddingActor")[0], signal.SIGKILL)
            assert run.wait(100) == 0, report.read_text()
            found[name] = {row["id"]: (row["name"], row["value"], row["comment"]) for row in langfuse.scores.stored()}
    assert len(found["one"]) > 100
    assert "0 across languages, of 3" in str(found["one"]), "what only embeddings answer"
    assert found["ray"] == found["one"]


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}", "no-such-host.invalid:6379", "auto"])
def test_an_address_where_no_cluster_is_ends_the_command_at_once(tmp_path: Path, address: str) -> None:
    cases = json_lines(tmp_path / "c.jsonl", [qa_case(1), qa_case(2)])
    stated = {"RAY_ADDRESS": f"127.0.0.1:{free_port()}"} if address == "auto" else {}
    address, report = address.format(port=free_port()), tmp_path / "report"
    run = Forked(
        "score", cases, "--out", tmp_path / "v.jsonl", "--engine", "ray", "--address", address,
        env=TOKEN | stated, stderr=report,
    )  # fmt: skip
    assert run.wait(20) == 1
    assert f"Ray cannot be reached at {address}: " in report.read_text()
    assert "remedy: name the head's address" in report.read_text()


@LITELLM.mark
def test_what_other_workers_have_asked_when_a_key_is_refused_is_paid_for_once(cluster: Cluster, tmp_path: Path) -> None:
    slow: list[bytes] = []

    def act(seen: Seen) -> Act:
        number = int(re.search(rb"order (\d+) come", seen.raw)[1])  # type: ignore[index]  # each request has one
        if 16 <= number < 32:  # the second piece
            slow.append(seen.raw)
            return judges(delay_s=4.0)(seen)
        return unauthorised()(seen) if slow else judges(delay_s=1.5)(seen)

    lines = [
        {"case_id": f"c{n}", "input": f"When does order {n} come?", "model_output": f"Order {n} comes tomorrow.",
         "context": ["All orders come tomorrow."]} for n in range(48)
    ]  # fmt: skip
    cases, out = json_lines(tmp_path / "cases.jsonl", lines), tmp_path / "v.jsonl"
    with Provider(act) as provider:
        section = {
            "model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": "sk-none", "retries": 0,
            "concurrency": 4,
        }  # fmt: skip
        config = tmp_path / "c.yaml"
        config.write_text(json.dumps({"evaluators": {"judge": section}}))
        arguments = ("score", cases, "--out", out, "--config", config, "--rubric", "quality")
        there = ("--engine", "ray", "--address", cluster.address)
        run = sidejudge(*arguments, *there, env=TOKEN)
        assert (run.returncode, "authentication failed" in run.stderr) == (1, True), run.stderr
        paid, provider.standing = set(slow), judges()
        assert paid
        begin = len(provider.seen)
        assert score(*arguments[1:]).returncode == 0
        assert not paid & {seen.raw for seen in provider.seen[begin:]}


@LITELLM.mark
def test_an_outage_of_embeddings_costs_no_case_its_value_on_a_cluster_either(cluster: Cluster, tmp_path: Path) -> None:
    texts = [{"model_output": f"Kunde {number}.", "expected_outcome": f"Customer {number}."} for number in range(60)]
    stated = [{**text, "case_id": f"c{number}", "input": "Who?"} for number, text in enumerate(texts)]
    cases, report = json_lines(tmp_path / "c.jsonl", stated), tmp_path / "report"
    works = embeds(lambda text: (1.0, float(len(text))))
    with Provider(unauthorised()) as provider:
        provider.will(works, *[page(503)] * 5, works, works)
        section = {"remote": True, "model": "openai/e", "api_base": provider.url, "api_key": "sk-x"}
        (tmp_path / "c.yaml").write_text(json.dumps({"evaluators": {"embedding": section}}))
        command = ("score", cases, "--config", tmp_path / "c.yaml", "--out", tmp_path / "v.jsonl")
        command += ("--rubric", "benchmarks", "--engine", "ray", "--address", cluster.address)
        assert Forked(*command, env=TOKEN, stderr=report).wait(100) == 2, report.read_text()
        assert "error: evaluators.embedding: embeddings of openai/e: authentication failed" in report.read_text()
        assert not provider.next, "what passes was waited for"
        assert len(verdicts(tmp_path / "v.jsonl")) < 60
        provider.standing = works
        assert Forked(*command, env=TOKEN, stderr=report).wait(100) == 0, report.read_text()
    found = verdicts(tmp_path / "v.jsonl")
    assert [verdict["case_id"] for verdict in found] == [case["case_id"] for case in stated]
    assert {s["status"] for v in found for s in v["scores"] if s["metric"] == "answer_relevancy"} == {"scored"}


def test_an_address_without_the_engine_is_refused(tmp_path: Path) -> None:
    cases = json_lines(tmp_path / "c.jsonl", [qa_case(1)])
    done = sidejudge("score", cases, "--out", "v.jsonl", "--address", "auto", cwd=tmp_path)
    assert done.returncode == 2
    assert "--address: is of a Ray cluster" in done.stderr
    assert not (tmp_path / "v.jsonl").exists()


def test_a_cluster_that_is_lost_ends_the_run_with_a_code_of_its_own_and_what_was_judged_stands(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "cases.jsonl", [qa_case(n, right=n % 3 != 0) for n in range(3000)])
    whole, out, report = tmp_path / "whole.jsonl", tmp_path / "v.jsonl", tmp_path / "report"
    score(path, "--out", whole)
    with running() as cluster:
        there = ("--engine", "ray", "--address", cluster.address)
        run = Forked("score", path, "--out", out, *there, env=TOKEN, stderr=report)
        grown(run, out, 20_000)
    assert run.wait(60) == 3, report.read_text()
    assert f"the cluster at {cluster.address} does not answer any more\n" in report.read_text()
    assert "resume by the same command" in report.read_text()
    first = out.stat().st_size
    assert 20_000 < first < whole.stat().st_size
    assert score(path, "--out", out).returncode == 0
    assert verdicts(out) == verdicts(whole)
