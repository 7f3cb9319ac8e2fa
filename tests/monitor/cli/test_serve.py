"""``serve`` and ``demo`` as processes: how they start, how they refuse to, how they end."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from tests.forked import environment, sidejudge
from tests.running import free_port

ENTRY = Path(sys.executable).with_name("sidejudge")


def config(folder: Path, **sections: object) -> Path:
    stated = {
        "sources": {"otlp": {"http": f"127.0.0.1:{free_port()}"}},
        "api": {"listen": f"127.0.0.1:{free_port()}"},
        "store": {"path": str(folder / "state.sqlite")},
        "log": {"level": "error"},
    }
    path = folder / "sidejudge.yaml"
    path.write_text(yaml.safe_dump({**stated, **sections}))
    return path


def refused(reported: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """The cause and the remedy of a command that ended with exit code 2 and said nothing else."""
    assert (reported.returncode, reported.stdout) == (2, ""), reported.stderr
    first, second = reported.stderr.splitlines()
    assert (first[:7], second[:8]) == ("error: ", "remedy: ")
    return first, second


@pytest.mark.parametrize("key", ["sources.otlp.http", "api.listen"])
def test_an_address_that_is_taken_is_two_lines_and_exit_2(tmp_path, key):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        there = f"127.0.0.1:{taken.getsockname()[1]}"
        section = {"api": {"listen": there}} if key == "api.listen" else {"sources": {"otlp": {"http": there}}}
        cause, remedy = refused(sidejudge("serve", "--config", config(tmp_path, **section)))
    assert cause == f"error: {key}: cannot listen on {there}: Address already in use"
    assert "choose another address" in remedy


@pytest.mark.parametrize("path", ["file/s.sqlite", "."])
def test_a_store_that_cannot_be_made_or_is_a_folder_is_two_lines_and_exit_2(tmp_path, path):
    (tmp_path / "file").write_text("no folder")
    store = str(tmp_path / path)
    cause, remedy = refused(sidejudge("serve", "--config", config(tmp_path, store={"path": store})))
    assert f"store {store}" in cause
    assert "store.path" in cause + remedy


def test_a_store_that_is_no_database_is_two_lines_and_exit_2_and_stays_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, but somebody's notes\n" * 50)
    before = path.read_bytes()
    cause, remedy = refused(sidejudge("serve", "--config", config(tmp_path, store={"path": str(path)})))
    assert f"store {path}: not a sound SQLite database" in cause
    assert "move it away" in remedy
    assert path.read_bytes() == before


def test_a_configuration_that_is_wrong_is_told_with_exit_2(tmp_path):
    cause, remedy = refused(sidejudge("serve", "--config", config(tmp_path, sampling={"rte": 1.0})))
    assert "sampling.rte" in cause
    assert remedy
    cause, _ = refused(sidejudge("serve", "--config", tmp_path / "absent.yaml"))
    assert "absent.yaml" in cause


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_exit_0_after_it_told_where_to_look(tmp_path, number):
    path = config(tmp_path)
    process = subprocess.Popen(
        [str(ENTRY), "serve", "--config", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**environment(), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        lines = [process.stdout.readline() for _ in range(4)]
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    stated = yaml.safe_load(path.read_text())
    assert f"http://{stated['sources']['otlp']['http']}/v1/traces" in lines[0]
    assert [line.split()[0] for line in lines] == ["OTLP", "status", "metrics", "API"]
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_a_monitor_whose_output_goes_nowhere_serves_all_the_same(tmp_path, streams):
    path = config(tmp_path)
    api = yaml.safe_load(path.read_text())["api"]["listen"]
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", str(ENTRY), "serve", str(path)], env=environment()
    )
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=6)) as http:
            assert http.get(f"http://{api}/livez").status_code == 200
        time.sleep(0.1)  # it has shown where to look, or could not
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()


def test_it_takes_the_file_as_an_argument_and_addresses_as_options(tmp_path):
    path, otlp, api = config(tmp_path), *(f"127.0.0.1:{free_port()}" for _ in range(2))
    process = subprocess.Popen(
        [str(ENTRY), "serve", str(path), "--otlp", otlp, "--api", api], stdout=subprocess.PIPE, text=True,
        env={**environment(), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        lines = [process.stdout.readline() for _ in range(4)]
    finally:
        process.kill()
        process.communicate()
    assert f"http://{otlp}/v1/traces" in lines[0]
    assert f"http://{api}/" in lines[1]
    cause, _ = refused(sidejudge("serve", path, "--otlp", "nowhere"))
    assert "nowhere" in cause
    cause, _ = refused(sidejudge("serve", tmp_path / "absent.yaml"))
    assert "absent.yaml" in cause


def test_the_demo_ends_by_itself_leaves_nothing_behind_and_shows_verdicts(tmp_path):
    otlp, api = (f"127.0.0.1:{free_port()}" for _ in range(2))
    reported = sidejudge(
        "demo", "--seconds", 3, "--otlp", otlp, "--api", api, env={"TMPDIR": str(tmp_path), "COLUMNS": "120"}
    )
    assert (reported.returncode, reported.stderr) == (0, "")
    assert f"http://{otlp}/v1/traces" in reported.stdout
    assert f"http://{api}/metrics" in reported.stdout
    seen, scored = re.findall(r"traces: (\d+) seen, .*scored (\d+)", reported.stdout)[-1]
    assert 0 < int(scored) <= int(seen)
    assert re.search(r"(workflow|qa|entity) +insufficient_data +\d\.\d{3}", reported.stdout), reported.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_demo_whose_address_is_taken_is_two_lines_and_exit_2():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        there = f"127.0.0.1:{taken.getsockname()[1]}"
        cause, _ = refused(sidejudge("demo", "--otlp", there, "--api", f"127.0.0.1:{free_port()}"))
    assert f"cannot listen on {there}" in cause


def test_a_demo_needs_at_least_a_second():
    assert sidejudge("demo", "--seconds", "0").returncode == 2
