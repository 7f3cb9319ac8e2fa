"""What is released says what it is made of, and known vulnerabilities of it stop a release."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.needs import CYCLONEDX, PIP_AUDIT

ROOT = Path(__file__).parents[2]
LOCKS = [".ci/requirements.lock"]
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def bill(lock: str, out: Path) -> dict:
    made = subprocess.run([ROOT / ".ci" / "sbom", lock, out], env={**os.environ, "PYTHON": sys.executable}, check=False)
    assert made.returncode == 0
    return json.loads(out.read_text())


@CYCLONEDX.mark
@pytest.mark.parametrize("lock", LOCKS)
def test_a_bill_of_materials_names_each_package_of_the_lock_with_its_hashes(lock: str, tmp_path: Path) -> None:
    text = (ROOT / lock).read_text()
    found = bill(lock, tmp_path / "a.json")
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "sidejudge")
    assert {(each["name"], each["version"]) for each in found["components"]} == set(_PINNED.findall(text))
    assert all(each["purl"].startswith("pkg:pypi/") for each in found["components"])
    hashes = [
        one for each in found["components"] for where in each["externalReferences"] for one in where.get("hashes", ())
    ]
    assert {f"--hash=sha256:{each['content']}" for each in hashes} == set(_HASH.findall(text))


@pytest.fixture
def osv() -> Iterator[Callable[[str], str]]:
    """A server that answers as api.osv.dev does: it knows a vulnerability of one package."""
    servers: list[ThreadingHTTPServer] = []

    def start(bad: str) -> str:
        class Osv(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["package"]
                ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}]
                vuln = {
                    "id": "GHSA-aaaa-bbbb-cccc", "summary": "bad", "published": "2026-01-01T00:00:00Z", "aliases": [],
                    "affected": [{"package": asked, "ranges": ranges, "versions": []}],
                }  # fmt: skip
                body = json.dumps({"vulns": [vuln]} if asked["name"] == bad else {}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Osv))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def audit(url: str, lock: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / ".ci" / "audit", "--osv-url", url, lock]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@PIP_AUDIT.mark
def test_a_known_vulnerability_stops_a_release_and_no_database_is_no_assurance(
    osv: Callable[[str], str], tmp_path: Path
) -> None:
    lock = tmp_path / "two.lock"
    lock.write_text("".join(f"{name}==1.0 --hash=sha256:{'0' * 64}\n" for name in ("good", "bad")))
    found = audit(osv("bad"), lock)
    assert found.returncode == 1, found.stderr
    assert re.fullmatch(r"bad 1\.0: GHSA-aaaa-bbbb-cccc, mended in 99\.0\n", found.stdout)
    assert audit(osv("neither"), lock).stdout == "no vulnerability is known\n"
    unreachable = audit("http://127.0.0.1:9", lock)
    assert (unreachable.returncode, unreachable.stdout) == (3, "")
    assert "not checked" in unreachable.stderr


def test_each_threat_names_a_test_that_is_there() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text())
    rows = [
        line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("|") and "tests/" in line
    ]
    assert len(named) == len(rows) > 10
    for path, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path}::{name}"
