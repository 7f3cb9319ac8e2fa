from __future__ import annotations

import subprocess
import time
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from sidejudge.integrations.prometheus import families as f
from sidejudge.integrations.prometheus.collect import QueueSize, Snapshot
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.prometheus.families import FAMILIES
from sidejudge.integrations.prometheus.labels import KnownJudge, KnownLabels
from sidejudge.monitor.api.totals import late_reference_totals, pull_totals
from sidejudge.scoring.alerts.agreements import Agreements
from sidejudge.scoring.alerts.condition import AlertFinding
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.lifecycle import Alert, Posted, Stage
from sidejudge.scoring.lexical.shown_text import label_of
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.result.result import Blocker, Effect, Failed, NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.statistics.interval import MissingBand
from sidejudge.scoring.statistics.ppi import Corrected
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.metric_status import MetricEstimate, MetricLimit, MetricStatus
from sidejudge.scoring.status.service_status import OTHER, ServiceStatus, SliceStatus, StatusChange
from sidejudge.scoring.status.snapshots import (
    CascadeSnapshot,
    ExportSnapshot,
    FleetSnapshot,
    JudgeModelSnapshot,
    JudgeSnapshot,
    LateReferenceSnapshot,
    PullSnapshot,
    Spending,
)
from sidejudge.scoring.status.status import Appraisal, Policy, Status, Thresholds, appraise
from sidejudge.scoring.verdict.rubric import Criterion, Rubric
from sidejudge.scoring.verdict.verdict import Score, State, Verdict
from tests.needs import PROMTOOL

TRACE = "0af7651916cd43dd8448eb211c80319c"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def metric(name: str, bounds=(0.0, 1.0)) -> Metric:
    return Metric(
        id=name,
        title=name,
        meaning=name,
        formula=name,
        source="test",
        bounds=bounds,
        measure=lambda _: Scored(value=1.0),
    )


RUBRIC = Rubric(
    id="qa", title="Call questions", source="test", formula="a", pass_mark=0.8,
    criteria=(
        Criterion(metric=metric("accuracy"), weight=1.0, blocker=Blocker(effect=Effect.INVALID, below=0.5)),
        Criterion(metric=metric("grade", (0.0, 2.0))),
        Criterion(metric=metric("mistakes", (0.0, None))),
    ),
)  # fmt: skip
JUDGE = KnownJudge(models=["openai/m"], failures=["timeout"], flags=["contradiction"], shapes=["fence"])
LATENCY = MetricLimit(name="latency_p95", measure="latency", quantile=0.95, warning=5.0, critical=10.0)
KNOWN = KnownLabels(
    rubrics=[RUBRIC], ended_reasons=["scored", "sampled_out"], rejected_reasons=["no_ids"],
    destinations={"jsonl": ["not_written"]},
    forward_failures=["connect"], forward_unjudged=["error"], forward_ends=["sent"], forward_unkept=["full"],
    violations={"call": ["tool_missing"]}, limits=[LATENCY], conditions=conditions(Declaration()),
    judge=JUDGE, version="1.2.3", revision="abc", python="3.11",
    fingerprint="0123456789ab",
)  # fmt: skip


def score(name: str, result: Result, weight: float = 0.0) -> Score:
    return Score(metric=name, weight=weight, result=result, rating=None)


def verdict(**changes) -> Verdict:
    fields = {
        "case_id": "c", "trace_id": TRACE, "rubric": "qa", "rubric_version": "qa@1", "composite": 0.9,
        "composite_norm": 0.9, "coverage": 1.0, "state": State.VALID, "passed": True, "rating": "good", "blockers": (),
        "pass_mark": 0.8, "sampling_probability": 0.25, "created_at": "2026-01-01T00:00:00Z", "service": "shop",
        "environment": "prod", "scores": (score("accuracy", Scored(value=0.9), 1.0),),
    }  # fmt: skip
    return Verdict(**{**fields, **changes})


def violating() -> Verdict:
    missed = Scored(value=0.5, details={"missing": ["research"]})
    return verdict(
        rubric="workflow", passed=False, scores=(score("agents", missed, 1.0),), violations=("agents_missing",)
    )


def new(**options) -> Exporter:
    return Exporter(CollectorRegistry(), KNOWN, **options)


def samples(exporter: Exporter, accept: str = OPENMETRICS) -> dict[tuple, float]:
    text = exporter.exposition(accept)()[0].decode()
    families = parse_openmetrics(text) if accept else parse_text(text)
    return {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}


WORSE = SliceStatus(
    by="version", value="2.3", estimate=estimate([(False, 1.0)] * 30), others=estimate([(True, 1.0)] * 30),
    worse=True, since_ns=5 * 10**9,
)  # fmt: skip


def standing(service="shop", environment="prod", passes=20, failures=10, **more) -> ServiceStatus:
    reported = estimate([(True, 1.0)] * passes + [(False, 1.0)] * failures)
    return ServiceStatus(
        service=service,
        environment=environment,
        rubric="qa",
        estimate=reported,
        appraisal=appraise(reported, Policy()),
        **more,
    )


def test_what_the_watch_knows_of_a_window_is_exported():
    seen = samples(populated())
    who = ("prod", "qa", "shop")
    assert seen["sidejudge_pass_worst_ratio", *who] == 0.6
    assert seen["sidejudge_pass_best_ratio", *who] == 0.7
    assert seen["sidejudge_status_since_timestamp_seconds", *who] == 5
    assert seen["sidejudge_last_verdict_timestamp_seconds", *who] == 6
    assert seen["sidejudge_window_reach_seconds", *who] == 7
    assert seen["sidejudge_change_score_ratio", *who] == 1.1
    assert seen["sidejudge_change_timestamp_seconds", *who] == 4
    assert seen["sidejudge_scenario_drift_score_ratio", *who] == 1.2
    assert seen["sidejudge_scenario_drift_timestamp_seconds", *who] == 3


def test_alerts_are_counted_by_stage_with_zeros_in_advance_and_their_limits():
    exporter, (critical, *_) = new(), conditions(Declaration())
    alert = Alert(
        condition=critical.id, labels=(), stage=Stage.FIRING, since_ns=1, breached_ns=1,
        finding=AlertFinding(labels=(), breached=True, stated=""),
    )  # fmt: skip
    exporter.watch(lambda: Snapshot(alerts=[Posted(condition=critical, alert=alert, muted=False)]))
    exporter.alert_reported(critical.id, "firing")
    seen = samples(exporter)
    assert seen["sidejudge_alerts", "critical", "firing", "pass_rate_critical"] == 1
    assert seen["sidejudge_alerts", "critical", "pass_rate_critical", "pending"] == 0
    assert seen["sidejudge_alerts", "firing", "spool_large", "warning"] == 0
    assert seen["sidejudge_alert_events_total", "firing", "pass_rate_critical"] == 1
    assert seen["sidejudge_alert_events_total", "pass_rate_critical", "resolved"] == 0
    assert seen["sidejudge_alert_limit", "pass_rate_warning"] == 0.85
    assert ("sidejudge_alert_limit", "pass_rate_change") not in seen


def on_service(
    id_: str, stage: Stage = Stage.FIRING, *, unsent: bool = False, rubric: str | None = "qa", **more: str
) -> Posted:
    stated = {"service": "shop", "environment": "prod", **({"rubric": rubric} if rubric else {}), **more}
    labels = tuple(stated.items())
    alert = Alert(
        condition=id_, labels=labels, stage=stage, since_ns=1, breached_ns=1,
        finding=AlertFinding(labels=labels, breached=True, stated=""),
    )  # fmt: skip
    condition = next(each for each in conditions(Declaration()) if each.id == id_)
    return Posted(condition=condition, alert=alert, muted=unsent, unsent=unsent)


def test_whether_an_alert_was_sent_is_exported_with_the_labels_of_its_window():
    exporter = new()
    posted = [
        on_service("pass_rate_critical", Stage.UNKNOWN), on_service("pass_rate_warning", unsent=True),
        on_service("pass_rate_change", Stage.PENDING), on_service("pass_rate_change", service="unseen"),
        on_service("metric_warning", rubric=None, metric="latency_p95"),
        on_service("version_worse", slice="version", value="2.3"),
    ]  # fmt: skip
    exporter.watch(lambda: Snapshot(services=[standing()], alerts=posted))
    seen = samples(exporter)
    found = {key[1:]: value for key, value in seen.items() if key[0] == "sidejudge_alert_reported"}
    assert found == {
        ("", "", "", "pass_rate_critical", "prod", "qa", "shop"): 1,
        ("", "", "", "pass_rate_warning", "prod", "qa", "shop"): 0,
        ("", "", "", "latency_p95", "metric_warning", "prod", "shop"): 1,
        ("", "2.3", "prod", "qa", "shop", "version", "version_worse"): 1,
    }


def test_a_slice_and_its_alert_have_the_same_value_however_long_it_is():
    """Else the rules would raise an alert that the process holds back."""
    exporter, values = new(), ["arn:" + "x" * 200 + end for end in "ab"] + ["a  tenant\n"]
    slices = tuple(replace(WORSE, by="metadata.tenant", value=value) for value in values)
    posted = [
        on_service("slice_worse", unsent=True, slice="metadata.tenant", value=label_of(value)) for value in values
    ]
    exporter.watch(lambda: Snapshot(services=[standing(slices=slices)], alerts=posted))
    found: dict[str, set[str]] = {}
    for family in parse_openmetrics(exporter.exposition(OPENMETRICS)()[0].decode()):
        found[family.name] = {each.labels["value"] for each in family.samples if each.labels.get("value")}
    assert len(found["sidejudge_alert_reported"]) == 3
    assert found["sidejudge_slice_worse_timestamp_seconds"] == found["sidejudge_alert_reported"]


def test_a_rubric_may_have_thresholds_of_its_own():
    own = {"qa": Thresholds(warning=0.9, critical=0.8)}
    seen = samples(Exporter(CollectorRegistry(), replace(KNOWN, own_thresholds=own)))
    assert seen["sidejudge_pass_ratio_threshold", "qa", "warning"] == 0.9
    assert seen["sidejudge_pass_ratio_threshold", "critical", "qa"] == 0.8


def test_the_first_verdict_counts_once_with_its_weight():
    exporter = new()
    exporter.verdict(verdict(passed=False))
    seen = samples(exporter)
    assert seen["sidejudge_verdicts_total", "prod", "qa", "random", "shop"] == 1
    assert seen["sidejudge_verdicts_failed_total", "prod", "qa", "random", "shop"] == 1
    assert seen["sidejudge_verdict_weight_total", "prod", "qa", "shop"] == 4
    assert seen["sidejudge_verdict_failed_weight_total", "prod", "qa", "shop"] == 4
    assert seen["sidejudge_verdict_weight_squared_total", "prod", "qa", "shop"] == 16


def test_a_revision_counts_as_a_revision_and_nothing_else():
    exporter = new()
    exporter.verdict(verdict(passed=False))
    before = samples(exporter)
    exporter.verdict(verdict(passed=True, revision=2))
    after = samples(exporter)
    assert {name for name in after if after[name] != before[name]} == {
        ("sidejudge_verdicts_revised_total", "qa", "shop")
    }


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Unavailable("no reference"), "unavailable"),
        (Failed("timeout"), "error"),
        (NotApplicable("none"), "not_applicable"),
    ],
)
def test_an_incomplete_verdict_is_counted_apart_with_its_reason(result, reason):
    exporter = new()
    exporter.verdict(
        verdict(state=State.INCOMPLETE, passed=None, composite=None, scores=(score("accuracy", result, 1.0),))
    )
    seen = samples(exporter)
    assert seen[("sidejudge_verdicts_incomplete_total", *sorted(["qa", reason, "shop"]))] == 1
    assert seen["sidejudge_verdicts_total", "prod", "qa", "random", "shop"] == 0
    assert seen["sidejudge_verdict_weight_total", "prod", "qa", "shop"] == 0


def test_blockers_and_violations_are_weighed_by_place():
    exporter = new()
    exporter.verdict(verdict(passed=False, blockers=("accuracy", "accuracy")))
    exporter.verdict(violating())
    exporter.verdict(verdict(passed=None, state=State.INCOMPLETE, blockers=("accuracy",)))
    seen = samples(exporter)
    assert seen["sidejudge_verdicts_blocked_total", "accuracy", "prod", "qa", "shop"] == 1
    assert seen["sidejudge_verdict_blocked_weight_total", "accuracy", "prod", "qa", "shop"] == 4
    assert seen["sidejudge_verdicts_violating_total", "prod", "shop", "workflow"] == 1
    assert seen["sidejudge_verdict_violating_weight_total", "prod", "shop", "workflow"] == 4


def test_scores_fall_into_tenths_of_their_scale():
    exporter = new()
    exporter.verdict(
        verdict(
            scores=(
                score("accuracy", Scored(value=0.1 + 0.2 + 0.4), 1.0),
                score("grade", Scored(value=1.0)),
                score("mistakes", Scored(value=7.0)),
            )
        )
    )
    seen = samples(exporter)
    assert seen["sidejudge_metric_score_bucket", "0.6", "accuracy", "qa", "shop"] == 0
    assert seen["sidejudge_metric_score_bucket", "0.7", "accuracy", "qa", "shop"] == 1
    assert seen["sidejudge_metric_score_bucket", "0.4", "grade", "qa", "shop"] == 0
    assert seen["sidejudge_metric_score_bucket", "0.5", "grade", "qa", "shop"] == 1
    assert not [name for name in seen if name[0].startswith("sidejudge_metric_score") and "mistakes" in name]


def test_what_the_configuration_names_is_zero_from_the_start():
    seen = samples(new())
    assert seen["sidejudge_spans_rejected_total", "no_ids"] == 0
    assert seen["sidejudge_exports_failed_total", "jsonl", "not_written"] == 0
    assert seen["sidejudge_workflow_violations_total", "call", "tool_missing"] == 0
    assert seen["sidejudge_blockers_total", "accuracy", "qa"] == 0
    assert seen["sidejudge_traces_seen_total",] == 0
    assert seen["sidejudge_pass_ratio_threshold", "qa", "warning"] == 0.85
    assert seen["sidejudge_pass_ratio_threshold", "critical", "qa"] == 0.70
    assert seen["sidejudge_build_info", "1.2.3", "3.11", "abc"] == 1
    assert seen["sidejudge_config_info", "0123456789ab"] == 1


def test_a_new_service_brings_its_zeros_before_anything_is_counted():
    exporter = new()
    assert exporter.bounded("shop", "prod") == ("shop", "prod")
    seen = samples(exporter)
    assert seen["sidejudge_traces_total", "sampled_out", "shop"] == 0
    assert seen["sidejudge_verdicts_failed_total", "forced", "prod", "qa", "shop"] == 0
    assert seen["sidejudge_verdict_failed_weight_total", "prod", "qa", "shop"] == 0
    assert seen["sidejudge_verdicts_incomplete_total", "error", "qa", "shop"] == 0


def test_a_outcomes_ending_brings_the_services_other_reasons():
    exporter = new()
    exporter.traces_ended("shop", "scored", 3)
    seen = samples(exporter)
    assert (
        seen["sidejudge_traces_total", "scored", "shop"],
        seen["sidejudge_traces_total", "sampled_out", "shop"],
    ) == (3, 0)


def test_a_verdict_under_way_by_a_rubric_that_a_reload_removed_is_counted():
    exporter = new()
    exporter.take_rubrics([], "another", violations={})
    exporter.verdict(verdict(passed=False))
    assert samples(exporter)["sidejudge_verdicts_failed_total", "prod", "qa", "random", "shop"] == 1


def test_a_scenario_that_a_reload_brought_begins_at_zero():
    exporter = new()
    exporter.take_rubrics([], "another", violations={"refund": ["order_broken"]})
    assert samples(exporter)["sidejudge_workflow_violations_total", "order_broken", "refund"] == 0


def test_plumbing_is_counted():
    exporter = new()
    exporter.follow([(f.TRACES_SEEN, (), 5), (f.SPANS_RECEIVED, (), 100), (f.SPANS_REJECTED, ("no_ids",), 2)])
    exporter.trace_kept("shop", "forced")
    exporter.evaluation_lag("shop", 2.0)
    exporter.evaluation_lag("shop", -3.0)
    exporter.exported("jsonl", 3, at_s=1700.0)
    exporter.export_failed("jsonl", "not_written")
    exporter.workflow_violation("call", "tool_missing", TRACE)
    exporter.workflow_violation("call", "tool_missing", TRACE)
    seen = samples(exporter)
    assert seen["sidejudge_traces_seen_total",] == 5
    assert seen["sidejudge_traces_kept_total", "forced", "shop"] == 1
    assert seen["sidejudge_spans_received_total",] == 100
    assert seen["sidejudge_spans_rejected_total", "no_ids"] == 2
    assert seen["sidejudge_evaluation_lag_seconds_count", "shop"] == 2
    assert seen["sidejudge_evaluation_lag_seconds_sum", "shop"] == 2
    assert seen["sidejudge_exports_total", "jsonl"] == 3
    assert seen["sidejudge_exports_failed_total", "jsonl", "not_written"] == 1
    assert seen["sidejudge_exports_last_success_timestamp_seconds", "jsonl"] == 1700
    assert seen["sidejudge_workflow_violations_total", "call", "tool_missing"] == 2


def test_gauges_are_those_of_the_moment_of_the_scrape():
    exporter = new()
    moments = iter(
        [
            Snapshot(),
            Snapshot(
                services=[standing(composite_mean=0.81, metric_means={"accuracy": 0.9})],
                queues={"evaluation": QueueSize(items=2, oldest_s=99.5), "idle": QueueSize(items=0)},
                traces_open=4, spool_bytes=4096, contents_bytes=1024,
            ),
        ]
    )  # fmt: skip
    exporter.watch(lambda: next(moments))
    assert ("sidejudge_pass_ratio", "prod", "qa", "shop") not in samples(exporter)
    seen = samples(exporter)
    reported = standing().estimate
    assert seen["sidejudge_pass_ratio", "prod", "qa", "shop"] == pytest.approx(2 / 3)
    assert seen["sidejudge_pass_lower_ratio", "prod", "qa", "shop"] == reported.lower
    assert seen["sidejudge_pass_upper_ratio", "prod", "qa", "shop"] == reported.upper
    assert seen["sidejudge_effective_samples", "prod", "qa", "shop"] == 30
    assert seen["sidejudge_composite_mean", "prod", "qa", "shop"] == 0.81
    assert seen["sidejudge_metric_mean", "accuracy", "prod", "qa", "shop"] == 0.9
    assert seen["sidejudge_traces_open",] == 4
    assert seen["sidejudge_queue_items", "evaluation"] == 2
    assert seen["sidejudge_queue_oldest_timestamp_seconds", "evaluation"] == 99.5
    assert ("sidejudge_queue_oldest_timestamp_seconds", "idle") not in seen
    assert seen["sidejudge_spool_bytes",] == 4096
    assert seen["sidejudge_kept_contents_bytes",] == 1024


def test_exactly_one_status_is_in_force():
    exporter = new()
    exporter.watch(lambda: Snapshot(services=[standing()]))
    seen = samples(exporter)
    states = {s: seen[("sidejudge_status", *sorted(["prod", "qa", "shop", s.value]))] for s in Status}
    assert states == {s: float(s is Status.WARNING) for s in Status}


def test_an_empty_window_has_a_status_and_no_ratio():
    exporter = new()
    exporter.watch(lambda: Snapshot(services=[standing(passes=0, failures=0)]))
    seen = samples(exporter)
    assert seen["sidejudge_status", "insufficient_data", "prod", "qa", "shop"] == 1
    assert seen["sidejudge_effective_samples", "prod", "qa", "shop"] == 0
    assert ("sidejudge_pass_ratio", "prod", "qa", "shop") not in seen


def test_services_beyond_the_cap_share_one_label_and_are_warned_of_once(caplog):
    exporter = new(label_cap=2)
    for number in range(10):
        exporter.verdict(verdict(service=f"service-{number}"))
    seen = samples(exporter)
    assert seen["sidejudge_verdicts_total", OTHER, "prod", "qa", "random"] == 8
    assert len([r for r in caplog.records if r.name == "sidejudge.metrics"]) == 1
    assert "metrics.label_cap" in caplog.text


def test_configured_values_have_their_place_beside_the_cap():
    exporter = new(label_cap=1)
    exporter.verdict(verdict())
    seen = samples(exporter)
    assert seen["sidejudge_metric_score_count", "accuracy", "qa", "shop"] == 1
    assert seen["sidejudge_traces_total", "sampled_out", "shop"] == 0


def test_pairs_of_service_and_environment_are_bounded_too():
    exporter = new(label_cap=5)
    for number in range(500):
        exporter.verdict(verdict(service=f"s{number % 5}", environment=f"e{number // 100}"))
        exporter.verdict(verdict(service=f"s{number % 7}", environment=f"e{number}"))
    pairs = {name[1:] for name in samples(exporter) if name[0] == "sidejudge_verdict_weight_total"}
    assert len(pairs) <= 4 * 5 + 6


def test_the_worst_of_the_windows_beyond_the_cap_is_shown_so_that_its_alert_is_raised():
    exporter, well = new(label_cap=1), {"passes": 30, "failures": 0}
    critical = on_service("pass_rate_critical", service="c")
    services = [standing("a", **well), standing("b", **well), standing("c", passes=0, failures=30)]
    exporter.watch(lambda: Snapshot(services=services, alerts=[critical]))
    seen = samples(exporter)
    assert {name[1:]: value for name, value in seen.items() if name[0] == "sidejudge_pass_ratio"} == {
        ("a", "prod", "qa"): 1, ("__other__", "prod", "qa"): 0,
    }  # fmt: skip
    assert seen["sidejudge_status", "__other__", "critical", "prod", "qa"] == 1
    assert seen["sidejudge_alert_reported", "", "", "", "__other__", "pass_rate_critical", "prod", "qa"] == 1
    # An alert that stands while its window is undecided stands for Prometheus too.
    services[2] = standing("c", passes=1, failures=0)
    seen = samples(exporter)
    assert seen["sidejudge_status", "__other__", "healthy", "prod", "qa"] == 1
    assert seen["sidejudge_alert_reported", "", "", "", "__other__", "pass_rate_critical", "prod", "qa"] == 1


def test_services_that_other_monitors_of_a_fleet_judge_take_no_place_from_those_that_this_one_does():
    exporter = new(label_cap=1)
    services = [standing("bank"), standing("desk"), standing("shop")]
    exporter.watch(
        lambda: Snapshot(services=services, fleet=FleetSnapshot(name="a", database="postgresql://db", state="ok"))
    )

    def shown() -> set[str]:
        return {label for name, *labels in samples(exporter) if name == "sidejudge_pass_ratio" for label in labels}

    assert shown() == {"bank", "__other__", "prod", "qa"}
    exporter.verdict(verdict())
    assert samples(exporter)["sidejudge_verdicts_total", "prod", "qa", "random", "shop"] == 1
    assert shown() == {"bank", "shop", "__other__", "prod", "qa"}


def test_of_services_that_one_label_stands_for_the_worst_is_shown():
    well, ill = {"passes": 30, "failures": 0}, {"passes": 0, "failures": 30}
    for names in (("shop", "shop "), ("shop ", "shop"), ("\u202eshop", "shop")):
        exporter = new()
        services = [standing(names[0], **well), standing(names[1], **ill), standing("bank", **well)]
        exporter.watch(lambda services=services: Snapshot(services=services))
        seen = samples(exporter)
        assert seen["sidejudge_pass_ratio", "prod", "qa", "shop"] == 0
        assert seen["sidejudge_status", "critical", "prod", "qa", "shop"] == 1
        assert seen["sidejudge_status", "healthy", "prod", "qa", "shop"] == 0
        assert seen["sidejudge_status", "bank", "healthy", "prod", "qa"] == 1


def test_the_worst_takes_no_place_of_the_cap_from_the_first():
    exporter = new(label_cap=1)
    exporter.watch(
        lambda: Snapshot(services=[standing("a", passes=30, failures=0), standing("b", passes=0, failures=30)])
    )
    assert [name[1] for name in samples(exporter) if name[0] == "sidejudge_pass_ratio"] == ["a", "__other__"]


def test_hostile_names_stay_on_their_line_and_short():
    exporter = new()
    hostile = 'a"b\\c\nd\x00e\u2028f\ud800g\u202e' + "x" * 10_000_000
    exporter.verdict(verdict(service=hostile, environment="\x07", passed=False))
    for accept in (OPENMETRICS, ""):
        (name,) = [n for n in samples(exporter, accept) if n[0] == "sidejudge_verdicts_failed_total" and "random" in n]
        (service,) = [value for value in name if value.startswith("a")]
        assert service.startswith('a"b\\c d e f g x')
        assert len(service) == 128
        assert "unknown" in name


def test_failures_carry_the_trace_as_exemplar_and_only_a_real_id():
    exporter = new()
    exporter.verdict(verdict(passed=False, blockers=("accuracy",)))
    exporter.verdict(verdict(passed=False, trace_id="call-17 \n", service="bank"))
    families = {family.name: family for family in parse_openmetrics(exporter.exposition(OPENMETRICS)()[0].decode())}
    exemplars = {
        s.labels["service"]: s.exemplar
        for s in families["sidejudge_verdicts_failed"].samples
        if s.value and s.name.endswith("_total")
    }
    assert exemplars["shop"].labels == {"trace_id": TRACE}
    assert exemplars["bank"] is None
    assert any(s.exemplar for s in families["sidejudge_blockers"].samples)


def test_created_series_are_off_here_and_the_process_is_left_alone():
    exporter = new()
    exporter.verdict(verdict())
    for accept in (OPENMETRICS, ""):
        assert b"_created" not in exporter.exposition(accept)()[0]
    registry = CollectorRegistry()
    Counter("elsewhere_total", "somebody else's", registry=registry)
    assert any(s.name == "elsewhere_created" for family in registry.collect() for s in family.samples)


def test_two_exporters_in_one_process_do_not_meet():
    one, other = new(), new()
    one.follow([(f.SPANS_RECEIVED, (), 3)])
    assert samples(other)["sidejudge_spans_received_total",] == 0


def test_two_exporters_on_one_registry_are_refused():
    registry = CollectorRegistry()
    Exporter(registry, KNOWN)
    with pytest.raises(ValueError, match="Duplicated"):
        Exporter(registry, KNOWN)


def failing(group, count=1, rubric="agent"):
    return FailureGroup(
        group=group, rubric=rubric, metric="tool_routing", code=None, words="", count=count, before=0, examples=()
    )


def test_beyond_twenty_groups_of_failures_share_a_series_and_empty_ones_have_none():
    exporter = new()
    groups = [*(failing(f"{number:08x}", 50 - number) for number in range(23)), failing("ffffffff", 0)]
    exporter.watch(lambda: Snapshot(failures=groups))
    text, _ = exporter.exposition()()
    lines = [line for line in text.decode().splitlines() if line.startswith("sidejudge_failure_group_verdicts{")]
    assert len(lines) == 21
    assert lines[-1].endswith(" 87.0")
    assert 'group="__other__",metric="__other__"' in lines[-1]


def populated() -> Exporter:
    exporter = new()
    for number in range(60):
        exporter.verdict(
            verdict(passed=number % 3 > 0, service=f"service {number % 4}", blockers=("accuracy",) * (number % 2))
        )
    exporter.verdict(verdict(passed=None, state=State.INCOMPLETE))
    exporter.verdict(violating())
    exporter.traces_ended(None, "scored", 1)
    exporter.evaluation_lag("shop", 1.5)
    exporter.exported("jsonl", at_s=time.time())
    exporter.workflow_violation("call", "tool_missing", TRACE)
    exporter.runs.run("shop", {"completed": True, "answered": False}, {"search": [3, 1]})
    exporter.application.trace(
        "shop", "live", "1.2", weight=2.0, latency_s=1.5, models={"m": (1, 2, 0.5)}, drawn=True, trace_id=TRACE
    )
    exporter.limits.values("shop", "live", "", {"latency": 1.5}, 2.0)
    exporter.follow(pull_totals(PullSnapshot(state="retrying", errors=(("timeout", 1),))))
    exporter.follow([(f.FLEET_ROUNDS, ("ok",), 1), (f.CLAIMS_DISBELIEVED, ("undeclared",), 1)])
    exporter.follow(late_reference_totals(LateReferenceSnapshot(state="ok", failures=(("gone", 1),))))
    exporter.watch(
        lambda: Snapshot(
            sampling_rate=0.05,
            unanswered={("shop", "prod", "qa"): 3.0},
            behind={("shop", "prod", "qa"): (3.0, 2.0)},
            services=[
                standing(
                    composite_mean=0.5, metric_means={"accuracy": 0.5}, since_ns=5 * 10**9, incomplete=3,
                    last_ns=6 * 10**9, reach_ns=7 * 10**9,
                    missing=MissingBand(0.6, 0.7), slices=(WORSE,),
                    corrected=Corrected(0.6, 0.5, 0.7), rectified=Corrected(0.6, 0.5, 0.7),
                    cascade=CascadeSnapshot(
                        verdicts={"sure": 1}, changed={"doubt": 0}, unanswered=0, as_delivered=0.5, corrected=False
                    ),
                    change=StatusChange(share=1.1, alarmed=True, good=0.9, bad=0.75, run_length=1e4,
                    since_ns=4 * 10**9),
                    drift=StatusChange(share=1.2, alarmed=True, good=0.98, bad=0.9, run_length=1e4, since_ns=3 * 10**9),
                )
            ],
            queues={"evaluation": QueueSize(items=1, oldest_s=1.0)}, spool_bytes=1, forward_buffer_bytes=1,
            contents_bytes=1, anomalies={"split_traces": False},
            failures=[failing("aa"), failing("bb")],
            exports=[ExportSnapshot(destination="slack", state="stopped", dead=1)],
            connections={"slack": "stopped"},
            pull=PullSnapshot(state="ok", lag_s=1.0, read_s=2.0),
            fleet=FleetSnapshot(
                name="a", database="postgresql://db", state="ok", read_s=2.0, clock_offset_s=-600.0
            ),
            late_references=LateReferenceSnapshot(state="ok"),
            judge=JudgeSnapshot(
                name="openai/m", models=(JudgeModelSnapshot(model="openai/m", circuit="closed"),), outage=None,
                spending=(Spending(period="hour", spent_usd=1, limit_usd=2),), shares={"high": 1.0}, under_way=1,
                waiting=0,
            ),
            agreement=labels(),
            metrics=[
                MetricStatus(
                    service="shop", environment="live", limit=LATENCY,
                    estimate=MetricEstimate(value=4.0, lower=3.0, upper=6.0, n=9, effective_n=8.0),
                    appraisal=Appraisal(Status.WARNING, "too slow"),
                )
            ],
            alerts=[on_service("pass_rate_warning")],
        )
    )  # fmt: skip
    return exporter


def labels() -> AgreementSnapshot:
    heard = Agreements()
    for number, (people, ours) in enumerate([(True, True)] * 9 + [(False, False)] * 5 + [(False, True)] * 2):
        heard.record(rubric="answer", version="1", subject=str(number), by="ann", people=people, ours=ours)
    return AgreementSnapshot(
        source="langfuse", read_s=1.0, measured=heard.report(), passed_over={"unmet": 1}, corrections={"answer": 2},
        corrected_passes={"answer": 1},
    )  # fmt: skip


def test_runs_are_counted_with_what_was_found_and_with_their_tools():
    exporter = new()
    exporter.runs.run("shop", {"completed": True, "answered": False}, {"search": [3, 1]})
    exporter.runs.run("shop", {"completed": False, "answered": False}, {"search": [2, 0]})
    found = samples(exporter)
    assert found["sidejudge_runs_total", "shop"] == 2
    assert found["sidejudge_run_signs_total", "completed", "shop"] == 1
    assert found["sidejudge_run_signs_total", "answered", "shop"] == 0
    assert found["sidejudge_tool_calls_total", "search", "shop"] == 5
    assert found["sidejudge_tool_errors_total", "search", "shop"] == 1


def test_tools_that_traces_make_up_do_not_make_series_without_end():
    exporter = Exporter(CollectorRegistry(), KNOWN, label_cap=3)
    for number in range(50):
        exporter.runs.run("shop", {}, {f"tool {number}": [1, 1]})
    tools = {key: value for key, value in samples(exporter).items() if key[0] == "sidejudge_tool_calls_total"}
    assert len(tools) == 4
    assert tools["sidejudge_tool_calls_total", "__other__", "shop"] == 47
    exporter = Exporter(CollectorRegistry(), KNOWN, label_cap=3)
    for number in range(50):
        exporter.runs.run(f"service {number % 4}", {}, {f"tool {number % 5}": [1, 0]})
    pairs = [key for key in samples(exporter) if key[0] == "sidejudge_tool_calls_total"]
    assert len(pairs) <= 12 + 4, "four times as many pairs as names, and one for the rest of each service"


def test_every_declared_family_is_exported_with_exactly_its_labels():
    exporter = populated()
    exported = {}
    for family in parse_openmetrics(exporter.exposition(OPENMETRICS)()[0].decode()):
        for sample in family.samples:
            exported.setdefault(family.name, set()).add(frozenset(sample.labels) - {"le"})
    declared = {
        family.name.removesuffix("_total").removesuffix("_info"): {frozenset(family.labels)} for family in FAMILIES
    }
    assert exported == declared


@PROMTOOL.mark
def test_promtool_has_nothing_to_object_to():
    text, _ = populated().exposition()()
    checked = subprocess.run([PROMTOOL.path(), "check", "metrics"], input=text, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_the_gauges_of_a_scrape_are_those_of_its_moment_whenever_it_is_written():
    seen = [Snapshot(traces_open=3)]
    exporter = new()
    exporter.watch(lambda: seen[-1])
    write = exporter.exposition()
    seen.append(Snapshot(traces_open=4))
    assert b"sidejudge_traces_open 3.0" in write()[0]
    assert b"sidejudge_traces_open 4.0" in exporter.exposition()()[0]


def test_a_service_has_series_of_those_rubrics_alone_that_can_judge_it():
    other = replace(RUBRIC, id="entity")
    rubrics_of = {"shop": ["qa"], "desk": ["entity"]}.__getitem__
    exporter = Exporter(CollectorRegistry(), replace(KNOWN, rubrics=[RUBRIC, other], rubrics_of=rubrics_of))
    for service in ("shop", "desk"):
        exporter.bounded(service, "prod")
    families = parse_text(exporter.exposition()()[0].decode())
    labels = [sample.labels for family in families for sample in family.samples]
    named = {(each["rubric"], each["service"]) for each in labels if each.get("rubric") and "service" in each}
    assert named == {("qa", "shop"), ("entity", "desk")}


def test_limits_of_one_metric_share_its_series():
    """Each value counts once, as far as it keeps to all limits that concern its service; the strictest is shown."""
    shop, desk = replace(LATENCY, services=("shop",), warning=1.0, critical=None), replace(LATENCY, services=("desk",))
    exporter = Exporter(CollectorRegistry(), replace(KNOWN, limits=[LATENCY, shop, desk]))
    for value in (0.5, 2.0, 7.0, 20.0):
        exporter.limits.values("shop", "live", "", {"latency": value}, 2.0)
    seen = samples(exporter)
    of_shop = ("", "latency_p95", "live", "shop")
    assert seen["sidejudge_limited_metric_weight_total", *of_shop] == 8
    assert seen["sidejudge_limited_metric_weight_squared_total", *of_shop] == 16
    kept = {level: seen["sidejudge_limited_metric_kept_weight_total", *sorted((*of_shop, level))]
            for level in ("warning", "critical")}  # fmt: skip
    assert kept == {"warning": 2, "critical": 6}
    named = {"sidejudge_limited_metric_limit", "sidejudge_limited_metric_kept_threshold_ratio"}
    families = parse_text(exporter.exposition()()[0].decode())
    shown = [sample for family in families for sample in family.samples if sample.name in named]
    assert [(each.labels["level"], each.value) for each in shown] == [
        ("critical", 10.0), ("warning", 1.0), ("critical", 0.95), ("warning", 0.95),
    ]  # fmt: skip
    below = [MetricLimit(name="tone_mean", measure="tone", rubric="qa", warning=each, below=True, bounds=(0.0, 1.0))
             for each in (0.3, 0.6, 0.5)]  # fmt: skip
    found = samples(Exporter(CollectorRegistry(), replace(KNOWN, limits=below)))
    assert found["sidejudge_limited_metric_limit", "qa", "tone_mean", "warning"] == 0.6
    assert found["sidejudge_limited_metric_kept_threshold_ratio", "qa", "tone_mean", "warning"] == 0.6


def test_a_limit_on_traces_that_name_no_service_counts_them():
    unnamed = replace(LATENCY, services=("unknown_*",))
    exporter = Exporter(CollectorRegistry(), replace(KNOWN, limits=[unnamed]))
    exporter.limits.values(None, None, "", {"latency": 1.0}, 2.0)
    seen = samples(exporter)
    assert seen["sidejudge_limited_metric_weight_total", "", "latency_p95", "unknown", "unknown_service"] == 2
