"""The past played again: what a watch told of it then, told anew; and what its judging took."""

from __future__ import annotations

import json
import random
from importlib import import_module
from pathlib import Path

import pytest

from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.alerting.details import WatchedWindow, details
from sidejudge.monitor.alerting.observation import observe_stored
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.offline.simulate import Costs, FiledPast, HistoryPast, Replay, StoredPast
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import Incidents
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.status.metric_status import MetricLimit
from sidejudge.scoring.status.status import Policy, Status, Thresholds
from sidejudge.scoring.trace.time_units import iso_time
from tests.needs import PYARROW
from tests.verdict_lines import metric_line, verdict_line

HOUR_NS, MINUTE_NS = 3_600 * 10**9, 60 * 10**9
BEGIN_NS = 1_795_255_200 * 10**9  # 2026-11-21 10:00 UTC
ODD = {"reason": "the judge wrote \ud800", "metadata": {"order": 10**30}}
"""What orjson does not read and what it does not write, as a verdict may quote it."""
WATCHED = {name: WatchedWindow.of(rubric) for name, rubric in RUBRICS.items()}


def verdicts(*stretches: tuple[float, float], per_hour: int = 120, seed: int = 1, usd: float = 0.0) -> list[dict]:
    """(hours, pass ratio) one after the other, at even times."""
    chance, found, at_ns = random.Random(seed), [], BEGIN_NS
    for hours, ratio in stretches:
        for _ in range(round(hours * per_hour)):
            at_ns += HOUR_NS // per_hour
            passed = chance.random() < ratio
            found.append(
                verdict_line(
                    f"c{len(found)}", composite=0.95 if passed else 0.4, passed=passed, created_at=iso_time(at_ns),
                    service="calls", environment="prod", sampling_probability=0.05,
                    scores=[metric_line("question_score_accuracy", 0.99 if passed else 0.5)],
                    judge={"model": "m" if usd else None, "cost_usd": usd},
                )
            )  # fmt: skip
    return found


def filed(folder: Path, lines: list[dict], *more: str) -> FiledPast:
    path = folder / "verdicts.jsonl"
    path.write_text("\n".join([*map(json.dumps, lines), *more]) + "\n")
    return FiledPast(path, complaints.append, lambda _: None)


complaints: list[str] = []


def played(past, hours: float, declared: Declaration | None = None, costs: Costs | None = None):
    replay = Replay(declared or Declaration(policy=Policy()), WATCHED, costs or Costs(rate=0.01))
    return replay.play(past.since(0), BEGIN_NS, BEGIN_NS + round(hours * HOUR_NS))


def spans(replayed) -> list[tuple[str, float, float | None]]:
    """(condition, began, ended) of the alerts on the pass rate, in hours."""
    return [
        (
            each.condition, (each.began_ns - BEGIN_NS) / HOUR_NS,
            None if each.ended_ns is None else (each.ended_ns - BEGIN_NS) / HOUR_NS,
        )
        for each in replayed.incidents
        if each.condition in {"pass_rate_warning", "pass_rate_critical"}
    ]  # fmt: skip


def test_a_dip_is_told_as_a_watch_would_have_and_not_otherwise(tmp_path: Path):
    lines = verdicts((3, 0.97), (2, 0.5), (4, 0.97))
    past = played(filed(tmp_path, lines), 9)
    (warning, began, ended), (critical, worse, better) = spans(past)
    assert (warning, critical) == ("pass_rate_warning", "pass_rate_critical")
    assert 3 < began < worse < 4.5
    assert 5 < better < ended < 7

    # The same by hand: the monitor's own windows and watch, a look a minute.
    windows = Windows(HOUR_NS)
    watch, incidents = Watch(Declaration(policy=Policy()), windows), Incidents()
    rest = list(map(observe_stored, lines))
    for minute in range(1, 9 * 60 + 1):
        now_ns = BEGIN_NS + minute * MINUTE_NS
        while rest and rest[0][1].at_ns < now_ns:
            key, seen = rest.pop(0)
            windows.add(key, seen)
            watch.learn(key, seen)
        found = {key: details(windows.members(key, now_ns), WATCHED[key.rubric]) for key in windows.keys()}  # noqa: SIM118  # Windows is no mapping
        for event in watch.look(Observed(now_ns=now_ns), found, {"qa": WATCHED["qa"].on_average}):
            incidents.add(event)
    by_hand = [(each.condition, each.began_ns, each.ended_ns) for each in incidents.reported()]
    replayed = [(each.condition, each.began_ns, each.ended_ns) for each in past.incidents]
    assert replayed == by_hand
    assert "metric_mean_low" in {condition for condition, *_ in replayed}


def test_other_thresholds_tell_another_past(tmp_path: Path):
    past = filed(tmp_path, verdicts((6, 0.80)))
    assert {condition for condition, *_ in spans(played(past, 6))} <= {"pass_rate_warning"}
    lax = Declaration(thresholds={"qa": Thresholds(warning=0.6, critical=0.5)})
    assert spans(played(past, 6, lax)) == []
    strict = Declaration(thresholds={"qa": Thresholds(warning=0.95, critical=0.9)})
    standing = {condition for condition, _, ended in spans(played(past, 6, strict)) if ended is None}
    assert "pass_rate_critical" in standing


def test_a_limit_of_a_metric_is_played_too(tmp_path: Path):
    limit = MetricLimit(
        name="score_mean", measure="question_score_accuracy", rubric="qa", warning=0.9, below=True, bounds=(0.0, 1.0)
    )
    lines = verdicts((3, 0.97), (3, 0.6))
    for line in lines:
        line |= {"passed": True, "composite": 0.95, "composite_norm": 0.95}
    replayed = played(filed(tmp_path, lines), 6, Declaration(metrics=(limit,)))
    began = [(each.began_ns - BEGIN_NS) / HOUR_NS for each in replayed.incidents if each.condition == "metric_warning"]
    assert len(began) == 1
    assert 3 < began[0] < 5


def test_what_began_before_is_told_while_it_stands_and_what_ended_before_is_not(tmp_path: Path):
    past = filed(tmp_path, verdicts((2, 0.4), (6, 0.97)))
    replay = Replay(Declaration(), WATCHED, Costs(rate=1.0))
    later = replay.play(past.since(0), BEGIN_NS + 2 * HOUR_NS, BEGIN_NS + 8 * HOUR_NS)
    assert spans(later)[0][1] < 2
    ended = Replay(Declaration(), WATCHED, Costs(rate=1.0)).play(
        past.since(0), BEGIN_NS + 6 * HOUR_NS, BEGIN_NS + 8 * HOUR_NS
    )
    assert spans(ended) == []


@pytest.mark.parametrize("mode", ["adaptive", "bound"])
def test_a_window_that_is_longer_than_the_longest_is_warmed_up_whole(mode):
    declared = Declaration(policy=Policy(mode=mode), window_ns=48 * HOUR_NS, longest_ns=24 * HOUR_NS)
    assert Windows(declared.window_ns, longest_ns=declared.longest_ns).reach_ns == declared.reach_ns == 48 * HOUR_NS
    assert Replay.warm_up_ns(declared) == 48 * HOUR_NS + declared.rule.looks * declared.look_ns


def test_silence_is_no_data_and_no_end(tmp_path: Path):
    replayed = played(filed(tmp_path, verdicts((2, 0.4))), 6)
    assert {(condition, ended) for condition, _, ended in spans(replayed)} == {
        ("pass_rate_warning", None), ("pass_rate_critical", None),
    }  # fmt: skip
    assert all(
        each.silent for each in replayed.incidents if each.condition in {"pass_rate_warning", "pass_rate_critical"}
    )
    (course,) = replayed.courses
    assert course.shares[Status.NO_DATA] > 0.5
    assert sum(course.shares.values()) == pytest.approx(1.0)
    assert course.verdicts == 240


def test_the_bill_is_what_verdicts_say_and_a_budget_is_watched(tmp_path: Path):
    past = filed(tmp_path, verdicts((3, 0.99), usd=0.01))
    replayed = played(past, 3, costs=Costs(rate=0.01, hour_usd=1.0))
    reported = replayed.judging
    assert (reported.verdicts, reported.judged, reported.models) == (360, 360, ("m",))
    assert reported.paid_usd == pytest.approx(3.6)
    assert reported.whole_usd == pytest.approx(72.0)
    assert reported.at_rate_usd == pytest.approx(0.72)
    assert reported.dearest_hour_usd == pytest.approx(1.2, abs=0.011)
    assert "judge_budget" in {each.condition for each in replayed.incidents}
    unpaid = played(filed(tmp_path, verdicts((3, 0.99))), 3).judging
    assert (unpaid.paid_usd, unpaid.whole_usd, unpaid.dearest_day_usd) == (None, None, None), "unknown is not nothing"


def test_a_file_need_not_be_in_order_and_what_is_no_verdict_is_said(tmp_path: Path):
    lines = verdicts((3, 0.97), (2, 0.5))
    orderly = played(filed(tmp_path, lines), 5).incidents
    lines[7] |= ODD
    random.Random(3).shuffle(lines)
    complaints.clear()
    timeless = {name: value for name, value in lines[0].items() if name != "created_at"}
    wrong = [{**lines[0], "created_at": stated} for stated in ("soon", 1795564800000, "2026-11-25 00:00:00")]
    past = filed(tmp_path, lines, "[]", "{", json.dumps(timeless), *map(json.dumps, wrong))
    assert played(past, 5).incidents == orderly
    assert past.bad_lines == len(complaints) == 6
    assert "created_at: is missing" in complaints[2]
    assert all("created_at: is no time with its zone; write" in each for each in complaints[3:])


@PYARROW.mark
def test_a_history_tells_the_same_as_a_file(tmp_path: Path):
    lines = [{**line, "trace_id": f"{number:032x}"} for number, line in enumerate(verdicts((2, 0.97), (2, 0.4)))]
    lines[7] |= ODD
    history = import_module("sidejudge.integrations.history.history")
    place = import_module("sidejudge.integrations.history.place").Place(str(tmp_path / "kept"))
    rows = import_module("sidejudge.integrations.history.rows").table("verdicts", lines)
    place.write("verdicts/day=2026-11-21/a.parquet", rows)
    assert len(list(history.History(place, "").records("verdicts"))) == len(lines)
    past = HistoryPast(str(tmp_path / "kept"), complaints.append)
    assert past.latest_ns == BEGIN_NS + 4 * HOUR_NS
    assert played(past, 4).incidents == played(filed(tmp_path, lines), 4).incidents


async def test_a_store_tells_the_same_as_a_file(tmp_path: Path):
    lines = verdicts((2, 0.97), (2, 0.4))
    store = Store(tmp_path / "s.sqlite")
    for number, line in enumerate(lines):
        _, seen = observe_stored(line)
        line["trace_id"] = f"{number:032x}"
        await store.finish(
            FinishedTrace(
                trace_id=bytes.fromhex(line["trace_id"]), service="calls", reason="scored", completion="root_ended",
                revision=1, details={}, verdicts=[line], closed_ns=seen.at_ns, chunks=0,
            )
        )  # fmt: skip
    past = StoredPast(tmp_path / "s.sqlite")
    assert past.latest_ns == BEGIN_NS + 4 * HOUR_NS
    assert played(past, 4).incidents == played(filed(tmp_path, lines), 4).incidents
    store.close()
