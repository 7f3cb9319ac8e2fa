"""What the standard detail leaves out is asked for by nothing of ours, and what it adds up keeps its sum."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families as parse

from sidejudge.dashboards.grafana.files import alert_rules, dashboards
from sidejudge.dashboards.rules.groups import rules
from sidejudge.integrations.prometheus import families as f
from sidejudge.integrations.prometheus.collect import Snapshot
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.prometheus.exposition import ADDED_UP, ALL, COARSE, LEFT_OUT, LOST
from sidejudge.integrations.prometheus.families import FAMILIES
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.statistics.estimate import from_sums
from sidejudge.scoring.statistics.interval import MissingBand
from sidejudge.scoring.status.service_status import ServiceStatus, SliceStatus, StatusChange
from sidejudge.scoring.status.status import Appraisal, Policy, Status
from tests.integrations.prometheus.test_exporter import KNOWN, score, verdict

ROOT = Path(__file__).parents[3]
MODES = ("adaptive", "bound", "point")
GENERATED = ("reference", "development")
DOCS = [
    *(page for page in (ROOT / "docs").rglob("*.md") if not set(GENERATED) & set(page.parts)),
    *(ROOT / "dashboards").rglob("*.md"), *(ROOT / "helm").rglob("*.md"), ROOT / "README.md",
]  # fmt: skip


def exporter(**options) -> Exporter:
    return Exporter(CollectorRegistry(), replace(KNOWN, forced=False, limits=()), **options)


def samples(each: Exporter) -> dict[str, float]:
    """Series with their labels, as text, and their values."""
    body, _ = each.exposition()()
    return {
        f"{sample.name}{json.dumps(sample.labels, sort_keys=True)}": sample.value
        for family in parse(body.decode())
        for sample in family.samples
    }


def asked() -> str:
    """Every expression of ours, whatever the configuration, and every page."""
    declared = [Declaration(policy=Policy(mode=mode)) for mode in MODES]
    boards = "".join(text for each in declared for text in dashboards(each).values())
    alerts = (json.dumps(rules(each)) + alert_rules(each) for each in declared)
    return "\n".join((*alerts, boards, *(page.read_text() for page in DOCS)))


def test_what_rules_boards_and_pages_ask_for_is_exported_in_the_standard_detail() -> None:
    text = asked()
    for family in LEFT_OUT:
        assert not re.search(rf"(?<![\w:]){family.name}(_bucket|_count|_sum)?(?![\w])", text), family.name
    assert f.VERDICT_WEIGHT.name in text
    left = {family.name for family in FAMILIES} - {family.name for family in LEFT_OUT}
    shown = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in parse(_text(exporter(detail="standard")))
    }
    assert left <= {name.replace("_info_info", "_info") for name in shown} | {f"{name}_info" for name in shown} | shown


def _text(each: Exporter) -> str:
    return each.exposition()()[0].decode()


def test_what_is_added_up_is_asked_for_without_a_service_or_with_that_of_all() -> None:
    for family in ADDED_UP:
        for chosen in re.findall(rf"{family.name}(?:_bucket|_count|_sum)?\{{([^}}]*)\}}", asked()):
            assert "service" not in chosen or ALL in chosen, chosen
    for board in re.findall(r"sidejudge_traces_total\{([^}]*)\}", asked()):
        assert "service" not in board, board
    lost = {
        reason
        for reasons in re.findall(r'sidejudge_traces_total\{reason=~"([^"]*)"', asked())
        for reason in reasons.split("|")
    }
    assert lost == set(LOST)


def test_coarse_bounds_are_some_of_the_declared_ones() -> None:
    for family, bounds in COARSE.items():
        assert set(bounds) < set(family.buckets)


def test_sums_over_services_are_those_of_the_full_detail() -> None:
    full, standard = exporter(detail="full"), exporter(detail="standard")
    for each in (full, standard):
        for service in ("shop", "desk", "shop"):
            each.verdict(verdict(service=service))
            each.traces_ended(service, "scored", 1)
            each.traces_ended(service, "shed", 2)
            each.evaluation_lag(service, 3.0)

    def summed(each: Exporter) -> Counter[str]:
        total: Counter[str] = Counter()
        for series, value in samples(each).items():
            if value:
                total[re.sub(r'"service": "[^"]*"', "", series)] += value
        return total

    left_out = tuple(family.name for family in LEFT_OUT)
    assert summed(standard) == {name: value for name, value in summed(full).items() if not name.startswith(left_out)}
    services = {name: json.loads(name[name.index("{") :]).get("service") for name in samples(standard)}
    assert {where for name, where in services.items() if name.startswith(f.EVALUATION_LAG.name)} == {ALL}
    assert {where for name, where in services.items() if name.startswith(f.VERDICTS.name)} == {"shop", "desk"}
    shed = {where for name, where in services.items() if name.startswith(f.TRACES.name + "{") and '"shed"' in name}
    assert shed == {"shop", "desk"}


def test_a_service_that_calls_itself_all_is_kept_apart_where_services_are() -> None:
    standard = exporter(detail="standard")
    standard.verdict(verdict(service=ALL))
    standard.verdict(verdict(service="shop"))
    assert sum(name.startswith(f.VERDICT_WEIGHT.name) for name in samples(standard)) == 2


@pytest.mark.parametrize("status", Status)
def test_the_status_in_force_is_1_and_others_are_there_only_beside_a_worse_one(status: Status) -> None:
    standard = exporter(detail="standard")
    one = ServiceStatus(
        service="shop", environment="prod", rubric="answer", appraisal=Appraisal(status=status, reason="x"),
        estimate=None, composite_mean=None, metric_means={}, incomplete=0, missing=MissingBand(worst=0.5, best=0.5),
    )  # fmt: skip
    standard.watch(lambda: Snapshot(services=[one]))
    found = {
        json.loads(name[name.index("{") :])["status"]: value
        for name, value in samples(standard).items()
        if name.startswith(f.STATUS.name + "{")
    }
    assert [name for name, value in found.items() if value] == [status.value]
    worse = (Status.WARNING, Status.CRITICAL)
    assert set(found) == ({"healthy", *worse} if status in worse else {status}), "rules of older versions add them up"


SIX = ("qa", "entity", "workflow", "quality", "dimensions", "run_health")


def steady(each: Exporter) -> None:
    """Fifty services that do well, each judged by six rubrics, sessions and tokens included."""
    estimate = from_sums(n=90, failures=3, weight=90.0, failed_weight=3.0, squared_weight=90.0, design_effect=1.5)
    each.take_rubrics([RUBRICS[name] for name in SIX], "f", violations={})
    moment = []
    for service in (f"service-{number}" for number in range(50)):
        each.trace_kept(service, "random")
        each.traces_ended(service, "scored", 1)
        each.evaluation_lag(service, 1.0)
        each.runs.run(service, {c.metric.id: False for c in RUBRICS["run_health"].criteria}, {})
        each.application.trace(
            service, "prod", "1.2.3", weight=1.0, latency_s=1.0, models={"m": (10, 20, 0.01)}, drawn=True, trace_id="ab"
        )
        for name in SIX:
            scores = tuple(score(c.metric.id, Scored(value=1.0), c.weight) for c in RUBRICS[name].criteria)
            each.verdict(verdict(service=service, rubric=name, scores=scores), "1.2.3")
            moment.append(
                ServiceStatus(
                    service=service, environment="prod", rubric=name, appraisal=Appraisal(Status.HEALTHY, "x"),
                    estimate=estimate, missing=MissingBand(worst=0.9, best=0.9), last_ns=1, reach_ns=1, since_ns=1,
                    change=StatusChange(share=0.0, alarmed=False, since_ns=None, good=0.9, bad=0.7, run_length=1e4),
                    slices=tuple(SliceStatus(by="name", value=v, estimate=estimate, others=estimate) for v in "abc"),
                )
            )  # fmt: skip
    each.watch(lambda: Snapshot(services=moment))


def test_fifty_services_by_six_rubrics_take_a_seventh_of_the_full_detail() -> None:
    standard = exporter(detail="standard")
    steady(standard)
    assert sum(not line.startswith("#") for line in _text(standard).splitlines()) <= 7_100
