"""Metrics of ragas and deepeval, and a plain function, in one declared rubric, with the real libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.needs import UV

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "tests" / "plugin" / "peers"
INSTALL_S = 90
"""Beyond it the libraries are taken as not to be had: two thirds of a gigabyte, 15 s out of uv's cache."""
CASES = (
    {
        "case_id": "near", "model_output": "It comes on Friday", "expected_outcome": "It comes on Monday",
        "tools_used": [{"name": "lookup", "arguments": {"id": 7}}],
        "metadata": {"expected_tools": [{"name": "lookup", "arguments": {"id": 7}}, {"name": "notify"}]},
    },
    {"case_id": "far", "model_output": "Sorry, sorry.", "expected_outcome": "It comes on Monday"},
)  # fmt: skip


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An environment with the libraries, beside this installation."""
    environment = tmp_path_factory.mktemp("peers") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    command = [UV.path(), "pip", "install", "-q", "--python", str(environment / "bin" / "python")]
    try:
        installed = subprocess.run(
            [*command, "-r", str(PEERS / "requirements.txt")], capture_output=True, check=False, timeout=INSTALL_S
        ).returncode
    except subprocess.TimeoutExpired:
        installed = None
    if installed != 0:
        pytest.skip("ragas and deepeval are missing; they could not be installed from an index within 90 s")
    (target,) = environment.glob("lib/python*/site-packages")
    # After the environment's own packages, so that the libraries get the versions that they ask for.
    (target / "zz_sidejudge.pth").write_text(f"{ROOT}\n{sysconfig.get_paths()['purelib']}\n")
    return environment / "bin" / "python"


def test_their_metrics_and_a_plain_function_make_one_verdict(python, tmp_path):
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CASES))
    command = [str(python), "-P", "-m", "sidejudge", "score", "cases.jsonl", "--config", str(PEERS / "sidejudge.yaml")]
    done = subprocess.run(
        [*command, "--out", "out.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200,
        env={**os.environ, "SIDEJUDGE_STORE__PATH": str(tmp_path / "store.sqlite")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdicts = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    near, far = ({each["metric"]: each["value"] for each in verdict["scores"]} for verdict in verdicts)
    # Levenshtein by definition: 3 of 18 letters differ. One of two expected calls was made: F1 is 2/3.
    assert near["similarity"] == pytest.approx(15 / 18, abs=1e-4)
    assert near["tool_call_f1"] == pytest.approx(2 / 3, abs=1e-4)
    assert (near["names_a_day"], near["apologises_once"]) == (1.0, 1.0)
    assert (far["names_a_day"], far["apologises_once"], far["tool_call_f1"]) == (0.0, 0.0, None)
    assert [verdict["passed"] for verdict in verdicts] == [True, False]
