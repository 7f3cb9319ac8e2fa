"""Judge metrics: zeros in advance, counts as they happen, gauges of the moment."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from sidejudge.integrations.prometheus.collect import Snapshot
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.prometheus.labels import KnownJudge, KnownLabels
from sidejudge.integrations.provider.attempt import JudgeAttempt
from sidejudge.integrations.provider.errors import ProviderUsage
from sidejudge.scoring.status.snapshots import JudgeModelSnapshot, JudgeSnapshot, Spending

MODEL = "openai/m-2025-01-01"
KNOWN = KnownJudge(
    models=(MODEL,), failures=("timeout", "parse_error"), flags=("contradiction", "disagreement"), shapes=("fence",)
)  # fmt: skip
STANDING = JudgeSnapshot(
    name=MODEL, models=(JudgeModelSnapshot(model=MODEL, circuit="open", reason="authentication failed"),),
    outage="authentication failed",
    spending=(
        Spending(period="hour", spent_usd=0.5, limit_usd=2.0), Spending(period="day", spent_usd=3, limit_usd=None),
    ),
    shares={"high": 1.0, "normal": 0.25, "low": 0.0}, under_way=3, waiting=7,
)  # fmt: skip


def new(judge=KNOWN) -> Exporter:
    return Exporter(CollectorRegistry(), KnownLabels(rubrics=[], ended_reasons=[], judge=judge))


class Found(dict):
    """Samples by name and label values, in whatever order these are named."""

    def __getitem__(self, wanted: tuple) -> float:
        return super().__getitem__((wanted[0], *sorted(wanted[1:])))

    def __contains__(self, wanted: tuple) -> bool:
        return super().__contains__((wanted[0], *sorted(wanted[1:])))


def samples(exporter: Exporter) -> Found:
    families = text_string_to_metric_families(exporter.exposition()()[0].decode())
    return Found(
        {(s.name.removeprefix("sidejudge_judge_"), *sorted(s.labels.values())): s.value
        for family in families
        for s in family.samples
        if s.name.startswith("sidejudge_judge_")}
    )  # fmt: skip


def test_everything_that_is_known_is_0_before_it_happens():
    found = samples(new())
    assert set(found.values()) == {0}
    for series in (
        ("requests_total", MODEL), ("requests_failed_total", MODEL, "timeout"), ("cost_usd_total", MODEL),
        ("requests_failed_total", MODEL, "parse_error"), ("tokens_total", "input", MODEL), ("cache_hits_total",),
        ("tokens_total", "output", MODEL), ("flags_total", "contradiction", MODEL), ("duration_seconds_count", MODEL),
        ("shapes_total", "fence", MODEL),
    ):  # fmt: skip
        assert series in found


def test_without_a_judge_no_model_is_counted():
    assert set(samples(new(None))) == {("cache_hits_total",), ("cache_misses_total",)}


def test_attempts_are_counted_with_what_they_took_and_cost():
    exporter = new()
    used = ProviderUsage(input_tokens=100, output_tokens=20, cost_usd=0.125)
    exporter.judge.attempted(JudgeAttempt(model=MODEL, duration_s=0.5, usage=used))
    nothing = ProviderUsage(input_tokens=7, cost_usd=None)
    exporter.judge.attempted(JudgeAttempt(model=MODEL, duration_s=-1.0, usage=nothing, failure="timeout"))
    exporter.judge.looked_up(hits=2, misses=3)
    exporter.judge.flagged(MODEL, "contradiction")
    found = samples(exporter)
    assert (found["requests_total", MODEL], found["requests_failed_total", MODEL, "timeout"]) == (2, 1)
    assert (found["tokens_total", "input", MODEL], found["tokens_total", "output", MODEL]) == (107, 20)
    assert found["cost_usd_total", MODEL] == 0.125
    assert (found["duration_seconds_count", MODEL], found["duration_seconds_sum", MODEL]) == (2, 0.5)
    assert (found["cache_hits_total",], found["cache_misses_total",]) == (2, 3)
    assert found["flags_total", "contradiction", MODEL] == 1


def test_the_moment_tells_breaker_budget_share_and_what_is_in_flight():
    exporter = new()
    exporter.watch(lambda: Snapshot(judge=STANDING))
    found = samples(exporter)
    assert {state: found["breaker_state", MODEL, state] for state in ("closed", "half_open", "open")} == {
        "closed": 0, "half_open": 0, "open": 1,
    }  # fmt: skip
    assert (found["budget_spent_usd", "hour"], found["budget_limit_usd", "hour"]) == (0.5, 2.0)
    assert ("budget_limit_usd", "day") not in found, "no budget is no number"
    assert (found["share_ratio", "high"], found["share_ratio", "normal"], found["share_ratio", "low"]) == (1, 0.25, 0)
    assert found["in_flight",] == 3
