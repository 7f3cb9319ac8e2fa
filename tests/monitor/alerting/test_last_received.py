"""Why a service is silent: how far what it sends came since its last verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.alerting.verdicts import Awaited, LastReceived
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import BEHIND, OUTAGES, Failed
from sidejudge.scoring.status.service_status import PAGES, Silence, SilenceCause
from sidejudge.scoring.verdict.verdict import Score, State
from tests.monitor.alerting.test_observation import verdict

MINUTE_NS, HOUR_NS = 60 * 10**9, 3_600 * 10**9


def test_each_cause_is_told_by_what_ended_since_the_last_verdict():
    now_ns = [0]
    found = LastReceived(lambda: now_ns[0])
    now_ns[0] = HOUR_NS
    assert found.cause("shop", 0) is SilenceCause.NO_SPANS
    found.ended("shop", EndReason.SAMPLED_OUT, 3)
    assert found.cause("shop", 0) is SilenceCause.NONE_SAMPLED
    assert found.cause("bank", 0) is SilenceCause.NO_SPANS
    assert found.cause("shop", HOUR_NS) is SilenceCause.NO_SPANS, "that was before"
    found.ended("shop", EndReason.NO_RUBRIC, 1)
    assert found.cause("shop", 0) is SilenceCause.NONE_JUDGED
    assert found.cause("shop", HOUR_NS - MINUTE_NS) is SilenceCause.NO_SPANS, "of the last verdict's own minute"
    found.ended("till", EndReason.EXCLUDED, 1)
    assert found.cause("till", 0) is SilenceCause.NONE_JUDGED, "a route leaves it out"
    found.ended("bar", EndReason.HANDED_OVER, 1)
    assert found.cause("bar", 0) is SilenceCause.NO_SPANS


def test_a_trace_that_waits_for_an_answer_is_sampled_and_not_judged():
    found = LastReceived(lambda: HOUR_NS)
    found.ended("shop", EndReason.SAMPLED_OUT, 3)
    found.waits("shop")
    assert found.cause("shop", 0) is SilenceCause.NONE_JUDGED


def test_spans_of_traces_that_are_still_open_came():
    now_ns = [HOUR_NS]
    found = LastReceived(lambda: now_ns[0])
    found.came("shop")
    assert found.cause("shop", 0) is SilenceCause.NONE_JUDGED, "its root may still come"
    assert found.cause("shop", HOUR_NS) is SilenceCause.NO_SPANS, "that was before"
    found.ended("shop", EndReason.SAMPLED_OUT, 1)
    now_ns[0] += HOUR_NS
    found.came("shop")
    assert found.cause("shop", 0) is SilenceCause.NONE_SAMPLED, "what has ended says more"


def test_of_a_silence_before_the_process_nothing_is_stated_until_it_has_listened_for_an_hour():
    now_ns = [9 * HOUR_NS]
    found = LastReceived(lambda: now_ns[0])
    assert found.cause("shop", 8 * HOUR_NS) is SilenceCause.UNKNOWN
    assert found.cause("shop", 9 * HOUR_NS) is SilenceCause.NO_SPANS
    now_ns[0] += HOUR_NS
    assert found.cause("shop", 8 * HOUR_NS) is SilenceCause.NO_SPANS


def test_names_without_end_are_not_kept():
    now_ns = iter([0])
    found = LastReceived(lambda: next(now_ns, HOUR_NS))
    for number in range(1_500):
        found.ended(f"service {number}", EndReason.SAMPLED_OUT, 1)
    assert found.cause("service 5", 0) is SilenceCause.NONE_SAMPLED
    assert found.cause("service 1400", 0) is SilenceCause.UNKNOWN


def test_a_silence_says_how_long_and_why_and_where_to_look():
    for hours, said in ((1, "60 min"), (3, "3 h"), (71, "71 h"), (80, "3 days")):
        silence = Silence(since_ns=0, cause=SilenceCause.INCOMPLETE)
        assert f"last verdict {said} ago" in silence.stated(hours * HOUR_NS)
    assert set(PAGES) == set(SilenceCause)
    assert silence.page.startswith("/help/")


def test_a_service_of_a_long_name_is_found_by_what_came_of_it():
    name = "shop" * 100
    found = LastReceived(lambda: HOUR_NS)
    outcomes = TraceOutcomes(on_ended=found.ended, on_kept=found.came)
    outcomes.kept([name])
    assert found.cause(name, 0) is SilenceCause.NONE_JUDGED
    outcomes.sampled_out(name, {b"a" * 16})
    assert found.cause(name, 0) is SilenceCause.NONE_SAMPLED
    found.waits(name)
    assert found.cause(name, 0) is SilenceCause.NONE_JUDGED
    assert found.cause("shop", 0) is SilenceCause.UNKNOWN, "it is another service"


def test_of_services_that_are_counted_together_no_cause_is_stated():
    now_ns = [0]
    found = LastReceived(lambda: now_ns[0])
    outcomes = TraceOutcomes(on_ended=found.ended, on_kept=found.came)
    outcomes.kept(["shop", *map(str, range(999))])
    now_ns[0] = 2 * HOUR_NS
    assert found.cause("bank", HOUR_NS) is SilenceCause.NO_SPANS
    outcomes.kept(["bank"])
    assert found.cause("bank", HOUR_NS) is SilenceCause.UNKNOWN
    assert found.cause("shop", HOUR_NS) is SilenceCause.NO_SPANS, "it is counted on its own"


def test_what_came_before_the_clock_was_set_back_is_no_cause():
    now_ns = [9 * HOUR_NS]
    found = LastReceived(lambda: now_ns[0])
    found.came("shop")
    found.ended("bank", EndReason.SAMPLED_OUT, 1)
    now_ns[0] = 2 * HOUR_NS
    assert found.cause("shop", HOUR_NS) is SilenceCause.UNKNOWN
    now_ns[0] = 4 * HOUR_NS
    assert found.cause("shop", HOUR_NS) is SilenceCause.NO_SPANS
    assert found.cause("bank", HOUR_NS) is SilenceCause.NO_SPANS
    found.came("shop")
    assert found.cause("shop", HOUR_NS) is SilenceCause.NONE_JUDGED


def ended(trace_id: bytes) -> TraceResult:
    return TraceResult(
        trace_id=trace_id, service="shop", reason=EndReason.SCORED, completion="root_ended", revision=1, chunks=1,
        ended_ns=0, details={},
    )  # fmt: skip


def decided(trace_id: bytes, *, passed: bool | None, key: Key, at_ns: int = 0, why: str = "") -> TraceResult:
    """A trace, drawn at a twentieth, that ended with a verdict; ``why`` it neither passed nor failed."""
    scores = (Score(metric="a", weight=1.0, result=Failed(Reason("{why}", why=own(why))), rating=None),) if why else ()
    found = verdict(
        service=key.service, environment=key.environment, rubric=key.rubric, passed=passed, sampling_probability=0.05,
        scores=scores, state=State.INCOMPLETE if passed is None else State.VALID,
    )  # fmt: skip
    return replace(ended(trace_id), ended_ns=at_ns, verdicts=(found,))


def test_what_an_outage_keeps_waiting_counts_until_it_ends():
    out = [True]
    found, shop, bank = Awaited(lambda: out[0]), Key("shop", "prod", "qa"), Key("bank", "prod", "qa")
    found.waits(b"1", {shop: 20.0, bank: 20.0}, 0)
    assert [found.weight(shop, now_ns) for now_ns in (0, MINUTE_NS - 1)] == [20, 20]
    found.waits(b"1", {shop: 1.0}, MINUTE_NS)
    found.waits(b"2", {shop: 5.0}, MINUTE_NS)
    assert [found.weight(shop, now_ns) for now_ns in (MINUTE_NS, 2 * MINUTE_NS)] == [25, 25]
    out[0] = False
    found.waits(b"3", {shop: 100.0}, 3 * MINUTE_NS)
    assert (found.weight(shop, HOUR_NS), found.weight(bank, HOUR_NS)) == (25, 20), "the third came after the outage"
    found.committed(ended(b"1"))
    assert (found.weight(shop, HOUR_NS), found.weight(bank, HOUR_NS)) == (5, 0)
    found.committed(ended(b"2"))
    found.committed(ended(b"3"))
    found.committed(ended(b"3"))
    assert (found._since, found._keys) == ({}, {})


def test_a_judge_that_is_merely_behind_leaves_nothing_open():
    found, key = Awaited(lambda: False), Key("shop", "prod", "qa")
    found.waits(b"1", {key: 20.0}, 0)
    assert found.weight(key, HOUR_NS) == 0


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("judged", [True, False])
def test_what_a_slow_judge_has_not_answered_is_like_what_it_answered(judged, late):
    found, key = Awaited(lambda: False), Key("shop", "prod", "qa")
    for number in range(40):
        found.waits(bytes([number]), {key: 20.0}, 0)
    for number in range(40, 50):
        found.committed(decided(bytes([number]), passed=not judged, key=key))
    for number in range(9):
        found.committed(decided(bytes([number]), passed=judged, key=key))
    assert found.weight(key, 9 * 10**9) == 0, "no judge answers at once"
    assert (found.weight(key, MINUTE_NS), found.behind(key, MINUTE_NS)) == (31 * 20, (0, 0)), "nine answers are too few"
    found.committed(decided(bytes([9]), passed=judged, key=key))
    if late:
        for number in range(10, 40):
            found.committed(
                decided(bytes([number]), passed=None, key=key, at_ns=MINUTE_NS, why=f"{OUTAGES[0]}: {BEHIND}")
            )
    assert found.weight(key, MINUTE_NS) == 0
    assert found.behind(key, MINUTE_NS) == found.behind(key, 59 * MINUTE_NS) == (30 * 20, judged * 30 * 20)
    assert found.behind(key, 62 * MINUTE_NS) == (0, 0)


@pytest.mark.parametrize("out", [False, True])
def test_what_waits_counts_also_after_the_clock_was_set_back(out):
    found, key = Awaited(lambda: out), Key("shop", "prod", "qa")
    for number in range(40):
        found.waits(bytes([number]), {key: 20.0}, HOUR_NS)
    found.committed(decided(b"words", passed=False, key=key, at_ns=HOUR_NS))
    for number in range(10):
        found.committed(decided(bytes([number]), passed=True, key=key, at_ns=HOUR_NS))
    for minutes in (-20, -1, 1, 59):
        now_ns = HOUR_NS + minutes * MINUTE_NS
        assert found.behind(key, now_ns) == ((0, 0) if out else (30 * 20, 30 * 20)), minutes
        assert found.weight(key, now_ns) == (30 * 20 if out else 0)
    assert found.behind(key, 2 * HOUR_NS) == found.behind(key, HOUR_NS - 10**9) == (0, 0), "it came a moment later"


def test_what_waits_behind_a_judge_that_keeps_pace_changes_no_ratio():
    found, key = Awaited(lambda: False), Key("shop", "prod", "qa")
    for minute in range(200):
        found.waits(minute.to_bytes(16), {key: 20.0}, minute * MINUTE_NS)
        found.committed(decided((1_000 + minute).to_bytes(16), passed=False, key=key, at_ns=minute * MINUTE_NS))
        if minute >= 30:
            found.committed(decided((minute - 30).to_bytes(16), passed=True, key=key, at_ns=minute * MINUTE_NS))
    assert len(found._since[key]) == 30
    assert (found.weight(key, 200 * MINUTE_NS), found.behind(key, 200 * MINUTE_NS)) == (0, (0, 0))


def test_the_judges_answers_and_what_words_decide_weigh_as_they_were_drawn():
    found, key = Awaited(lambda: False), Key("shop", "prod", "qa")
    for number in range(100):
        found.waits(bytes([number]), {key: 20.0}, 0)
    for number in range(100, 140):
        found.committed(decided(bytes([number]), passed=number < 110, key=key))
    for number in range(20):
        found.committed(decided(bytes([number]), passed=number < 15, key=key))
    assert found.behind(key, MINUTE_NS) == (80 * 20, 80 * 20 * 0.75)


def test_what_words_decide_is_not_held_of_keys_of_which_nothing_waits():
    found = Awaited(lambda: False)
    for number in range(100):
        found.committed(decided(bytes([number]), passed=True, key=Key(f"s{number}", "prod", "qa")))
    assert found._minutes == {}


def test_what_a_spent_budget_did_not_reach_for_counts_for_a_window_and_what_was_drawn_by_chance_does_not():
    found, key = Awaited(lambda: False, HOUR_NS), Key("shop", "prod", "qa")

    def over_budget(name: bytes, share: float, at_ns: int) -> None:
        sampling = {"probability": 0.05, "judged_share": share, "over_budget": ["qa"]}
        found.committed(replace(ended(name), ended_ns=at_ns, details={"sampling": sampling, "environment": "prod"}))

    over_budget(b"1", 0.0, 0)
    over_budget(b"2", 0.5, 0)
    over_budget(b"3", 0.0, 50 * MINUTE_NS)
    assert [found.weight(key, minute * MINUTE_NS) for minute in (50, 59, 60, 110)] == [40, 40, 20, 0]
    assert found.weights(60 * MINUTE_NS) == {key: 20}


def test_names_that_a_spent_budget_did_not_reach_for_are_held_for_a_window_and_no_longer():
    found = Awaited(lambda: False, HOUR_NS)
    sampling = {"probability": 0.05, "judged_share": 0.0, "over_budget": ["qa"]}
    for minute in range(300):
        details = {"sampling": sampling, "environment": "prod"}
        each = replace(ended(b"1"), service=f"s{minute}", ended_ns=minute * MINUTE_NS, details=details)
        found.committed(each)
    assert sum(map(len, found._minutes.values())) == 60


def test_names_that_somebody_makes_up_while_a_budget_is_spent_count_together_beyond_a_thousand():
    found, shop = Awaited(lambda: False, HOUR_NS), Key("shop", "prod", "qa")
    found.unreached(shop, 20.0, 0)
    for number in range(70 * 100):
        found.unreached(Key(f"made up {number}", "prod", "qa"), 1.0, number * MINUTE_NS // 100)
        found.unreached(shop, 1.0, number * MINUTE_NS // 100)
    assert sum(found.weights(69 * MINUTE_NS).values()) == 2 * 60 * 100
    assert found.weight(shop, 69 * MINUTE_NS) == 60 * 100
    assert len(found.weights(69 * MINUTE_NS)) <= 1_001
    assert sum(map(len, found._minutes.values())) < 2_000
