"""What is read in parts by other processes is what one process reads, to the last digit."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.offline.engine import Engine, Here
from sidejudge.monitor.offline.learn import RunSource
from sidejudge.monitor.offline.score import verdict_source
from sidejudge.monitor.offline.score.verdict_source import VerdictSource, read_labels
from sidejudge.monitor.offline.simulate import FiledPast
from sidejudge.scoring.calibration.calibration import Calibration
from sidejudge.scoring.runs.verdict_line import Revisions, VerdictLine, VerdictLineError, read_verdict
from sidejudge.scoring.scorecards.scorecard import empty_tally, scorecard
from tests.verdict_lines import json_lines, metric_line, verdict_line


class Pickled:
    """Works as other processes do: what goes to them and comes back is pickled."""

    def map(self, work: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[Any]:
        work = pickle.loads(pickle.dumps(work))
        for piece in pieces:
            yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(piece)))))


@pytest.fixture
def verdicts(tmp_path: Path) -> Path:
    """Verdicts with weights that no order of plain sums adds alike, revisions, repeats, foreign rubrics, bad lines."""
    drawn = random.Random(7)
    lines: list[object] = []
    for number in range(700):
        probability = drawn.choice([1.0, 0.3, 0.01, 1e-9, math.pi / 10])
        lines.append(
            verdict_line(
                f"c{number % 650}", drawn.choice(["qa", "entity", f"own{number % 40}"]), round(drawn.random(), 3),
                passed=drawn.choice([True, True, False, None]),
                blockers=["response_structure_compliance"][: number % 9 == 0], sampling_probability=probability,
                cost_usd=drawn.choice([None, 0.1, 1e-7]),
                trace_id=f"t{number}", scores=[metric_line("response_structure_compliance", drawn.random())],
                rubric_version=f"qa@{number % 30}", service="s", environment="e", created_at="2026-11-01T00:00:00Z",
                run=None,
            )
        )  # fmt: skip
    lines += [{**lines[3], "revision": 2, "passed": False}, {**lines[600], "revision": 3}]
    lines[40], lines[400] = "{not json", {"case_id": "no verdict"}
    return json_lines(tmp_path / "v.jsonl", lines)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_source, "_CHUNK_LINES", 7)


def counted(path: Path, engine: Engine) -> object:
    tally, complaints, read = empty_tally(), [], []
    source = VerdictSource(path=path, complain=complaints.append, engine=engine)
    source.read_into(tally, read.append)
    figures = scorecard({"m": tally})
    others = (tally.others, tally.cost.value, sorted(tally.weights))
    return figures.to_json(), others, complaints, source.bad_lines, source.replaced, source.repeated, read[-1]


def compared(path: Path, engine: Engine) -> object:
    stated = [
        {"case_id": f"c{n}", "rubric": "qa", "label": n % 3 > 0, "by": by} for n in range(0, 700, 3) for by in "ab"
    ]
    labels = json_lines(path.with_name("labels.jsonl"), stated)
    calibration = Calibration()
    read_labels(labels, calibration.take, str, with_verdicts=False)
    VerdictSource(path=path, complain=str, engine=engine).read_into(calibration, lambda _: None)
    return [each.to_json() for each in calibration.report()], calibration.unmet


def learned(path: Path, engine: Engine) -> object:
    cases = path.with_name("cases.jsonl")
    stated = [
        {"case_id": f"c{n}", "name": "shop", "model_output": "x", "tools_used": [{"name": "t", "arguments": {"n": n}}]}
        for n in range(200)
    ]
    lines = [json.dumps(each) for each in stated]
    lines[77] = "{not json"
    cases.write_text("\n".join(lines))
    source = RunSource(match=MatchSection(), group_by="name", good="passed", labels={}, reward=None)
    complaints: list[str] = []
    runs = list(source.read([cases], complaints.append, engine=engine))
    assert len(runs) == 199
    return runs, complaints


def played(path: Path, engine: Engine) -> object:
    complaints: list[str] = []
    past = FiledPast(path, complaints.append, lambda _: None, engine)
    return past.latest_ns, past.bad_lines, complaints, list(past.since(0))


@pytest.mark.parametrize("read", [counted, compared, learned, played])
def test_what_is_read_in_parts_is_what_is_read_in_one(verdicts: Path, read: Callable[[Path, Engine], object]) -> None:
    in_parts = read(verdicts, Pickled())
    verdict_source._CHUNK_LINES = 10**6  # type: ignore[misc]  # set back by the fixture
    assert in_parts == read(verdicts, Here())


def standing(path: Path) -> Iterator[VerdictLine]:
    """The verdicts of a file that no later revision replaces."""
    revisions, found = Revisions(), []
    for line in path.read_text().splitlines():
        with suppress(VerdictLineError, json.JSONDecodeError):
            found.append(read_verdict(json.loads(line)))
    for each in found:
        revisions.add(each)
    return filter(revisions.stands, found)


def test_parts_that_are_merged_come_to_what_adding_line_by_line_comes_to(verdicts: Path) -> None:
    merged, added = empty_tally(), empty_tally()
    VerdictSource(path=verdicts, complain=str, engine=Pickled()).read_into(merged, lambda _: None)
    labels = [json.dumps({"case_id": f"c{n}", "rubric": "qa", "label": n % 3 > 0, "by": "a"}) for n in range(0, 700, 3)]
    (path := verdicts.with_name("labels.jsonl")).write_text("\n".join(labels))
    calibrations = Calibration(), Calibration()
    for each in calibrations:
        read_labels(path, each.take, str, with_verdicts=False)
    VerdictSource(path=verdicts, complain=str, engine=Pickled()).read_into(calibrations[0], lambda _: None)
    for line in standing(verdicts):
        added.add(line)
        calibrations[1].add(line)
    assert scorecard({"m": merged}).to_json() == scorecard({"m": added}).to_json()
    assert (merged.cost.value, merged.costless, merged.weights) == (added.cost.value, added.costless, added.weights)
    assert merged.others == added.others
    merged_json, added_json = ([each.to_json() for each in of.report()] for of in calibrations)
    assert merged_json == added_json
    assert calibrations[0].unmet == calibrations[1].unmet
