"""Shards of verdicts: wherever a run is killed, they come to what one file holds, each verdict once."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from sidejudge.monitor.offline.score.case_lines import NumberedLine
from sidejudge.monitor.offline.score.resume import AnotherRunError
from sidejudge.monitor.offline.score.tally import ScoreTally
from sidejudge.monitor.offline.score.verdict_file import VerdictShards
from tests.forked import Forked
from tests.monitor.cli.test_score import qa_case, score, verdicts
from tests.needs import PYARROW
from tests.verdict_lines import json_lines

pytestmark = PYARROW.mark
RUN = {"cases": [["c", 1]]}
COUNTS = {"verdicts": 1, "read": 1, "bad_lines": 0, "unrouted": 0, "excluded": 0}


def shards(folder: Path, form: str = "jsonl", *, run: dict = RUN, anew: bool = False) -> VerdictShards:
    seconds = iter(range(0, 10**6, 20))  # every second time that somebody looks a shard is old
    place = import_module("sidejudge.integrations.history.place").Place(str(folder))
    made = VerdictShards(place, form, run, lambda: next(seconds))
    made.begin(anew=anew)
    return made


def verdict(number: int) -> dict:
    return {"rubric": "qa", "case_id": str(number), "passed": number % 2 == 0, "composite": number / 7, "scores": []}


def held(folder: Path, form: str) -> list[str]:
    place, found = import_module("sidejudge.integrations.history.place").Place(str(folder)), []
    for shard in json.loads((folder / "manifest.json").read_text())["shards"]:
        name = shard["name"]
        texts = place.read(name)["record"].to_pylist() if form == "parquet" else place.get(name).splitlines()
        assert len(texts) == shard["verdicts"]
        found += [json.loads(text)["case_id"] for text in texts]
    return found


def judged(made: VerdictShards, lines: int, until: int, width: int = 10) -> ScoreTally:
    """A run over lines of ``width`` bytes, every third no case; it is killed at line ``until``."""
    tally = ScoreTally()
    made.counted(tally)
    for line in made.left((NumberedLine(n, b"x", width * n) for n in range(1, lines + 1)), lambda _: None):
        if line.number == until:
            return tally
        if line.number % 3:
            made.append(json.dumps(verdict(line.number)).encode() + b"\n")
            tally.add(verdict(line.number))
        else:
            tally.bad_lines += 1
        made.reached(line.read, line.number, tally)
    made.all_walked()
    return tally


@pytest.mark.parametrize(("form", "width"), [("jsonl", 10), ("parquet", 10), ("jsonl", 0)])
def test_a_run_that_is_killed_again_and_again_comes_to_the_same(tmp_path: Path, form: str, width: int) -> None:
    """Rows of Parquet and recorded traces may all be read at the same byte: width 0."""
    for killed_at in (9, 17, 30):
        judged(shards(tmp_path, form), 40, killed_at, width)
    last = shards(tmp_path, form)
    tally = judged(last, 40, 99, width)
    assert held(tmp_path, form) == [str(n) for n in range(1, 41) if n % 3]
    assert json.loads((tmp_path / "manifest.json").read_text())["complete"] is True
    assert last.resumed >= 18
    whole = judged(shards(tmp_path / "other", form), 40, 99)
    assert (tally.counts, tally.bad_lines) == (whole.counts, whole.bad_lines) == ((14, 13, 0), 13)
    assert tally.rubrics["qa"].mean_composite == whole.rubrics["qa"].mean_composite


def test_a_manifest_of_version_0_2_0_has_bytes_alone_and_the_run_goes_on_by_them(tmp_path: Path) -> None:
    judged(shards(tmp_path), 40, 17)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    for shard in manifest["shards"]:
        del shard["number"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    judged(shards(tmp_path), 40, 99)
    assert held(tmp_path, "jsonl") == [str(n) for n in range(1, 41) if n % 3]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_verdict_that_quotes_half_a_surrogate_pair_is_written(tmp_path: Path, form: str) -> None:
    made = shards(tmp_path, form)
    made.append(json.dumps({**verdict(1), "reason": "the judge wrote \ud800"}).encode() + b"\n")
    made.reached(1, 1, ScoreTally())
    made.all_walked()
    again = shards(tmp_path, form)
    again.counted(ScoreTally())
    assert again.resumed == 1


@pytest.mark.parametrize(
    "manifest",
    [
        {"run": RUN, "shards": [{"name": "../../etc", **COUNTS}]},
        {"run": RUN, "shards": [{"name": "shard-000000.jsonl"}]},
        {"run": {"cases": [["c", 2]]}, "shards": []},
        {"run": RUN},
        [],
        "{not json",
    ],
)  # fmt: skip
def test_a_manifest_of_something_else_is_refused_and_nothing_is_deleted(tmp_path: Path, manifest: object) -> None:
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(AnotherRunError):
        shards(tmp_path)
    assert (tmp_path / "manifest.json").read_text() == text


def test_anew_forgets_what_was_there(tmp_path: Path) -> None:
    judged(shards(tmp_path), 40, 99)
    judged(shards(tmp_path, run={"cases": []}, anew=True), 4, 99)
    assert held(tmp_path, "jsonl") == ["1", "2", "4"]
    assert len(list(tmp_path.glob("shard-*"))) == len(json.loads((tmp_path / "manifest.json").read_text())["shards"])


def test_score_writes_into_shards_what_it_writes_into_a_file(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "cases.jsonl", [qa_case(n) for n in (*range(200), 3, 7)])
    score(path, "--out", tmp_path / "one.jsonl")
    run = Forked("score", path, "--out", tmp_path / "many", "--shards", "jsonl", "--workers", 2)
    assert run.wait(60) == 0
    assert verdicts(tmp_path / "many" / "shard-000000.jsonl") == verdicts(tmp_path / "one.jsonl")
    again = score(path, "--out", tmp_path / "many", "--shards", "jsonl")
    assert again.returncode == 0
    assert "202 verdicts stood already" in again.stderr
    assert "2 lines repeat a case_id" in again.stderr
    refused = score(path, "--out", tmp_path / "many", "--shards", "jsonl", "--keep-outputs")
    assert refused.returncode == 2
    assert "manifest.json: is of another input" in refused.stderr
