"""The rules in promtool: they are sound, do what the stories say, and each small mistake in them is noticed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidejudge.dashboards.generated import FOLDER, files
from sidejudge.dashboards.rules.groups import prometheus_rule, rule_file, rules
from sidejudge.integrations.prometheus.families import FAMILIES
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.metric_status import MetricLimit
from sidejudge.scoring.status.status import Policy
from tests.dashboards.rules.mutations import apart, beside, mutants, name_of
from tests.dashboards.rules.scenario import SITE, Scenario, seconds, target
from tests.dashboards.rules.scenarios import scenarios
from tests.needs import PROMTOOL

BOUND = Declaration(policy=Policy())
"""The mode that PromQL computes itself, look by look."""
RULES: list[dict[str, Any]] = [rule for group in rules(BOUND)["groups"] for rule in group["rules"]]
SCENARIOS = list(scenarios())
_PARTS = 6
"""Tests that share the mistakes: all of them take minutes of a processor."""
_OF_ONE_FORM = re.compile(r"\[\w+\]|\w+(:\w+)+|sidejudge_\w+|\b\d[\d.]*\w*|warning|critical")
"""What differs between rules of one form."""


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROMTOOL.path(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, "GOGC": "off", "GOMEMLIMIT": "400MiB"},  # collecting garbage takes a third of the processor
    )  # fmt: skip


def outcomes(folder: Path, tried: list[tuple[Scenario, list[dict[str, Any]]]]) -> list[str]:
    """What promtool says of each scenario under its rules: nothing, or what failed."""
    paths = []
    for number, (scenario, under) in enumerate(tried):
        (folder / f"{number}.rules").write_text(json.dumps({"groups": [{"name": "all", "rules": under}]}))
        path = folder / f"{number}.test"
        path.write_text(json.dumps(scenario.document(f"{number}.rules")))
        paths.append(str(path))
    parts = [paths[n::2] for n in range(2)]
    with ThreadPoolExecutor(2) as pool:
        stated = list(pool.map(lambda part: promtool("test", "rules", *part) if part else None, parts))
    found = dict.fromkeys(paths, "")
    for each in stated:
        for block in each.stdout.split("Unit Testing:  ")[1:] if each else ():
            path, _, rest = block.partition("\n")
            assert path in found, block
            found[path] = "" if "SUCCESS" in rest else rest.strip() or "failed"
    assert sum(each.stdout.count("Unit Testing:  ") for each in stated if each) == len(paths)
    return [found[path] for path in paths]


def test_the_generated_files_are_up_to_date() -> None:
    stale = [str(path) for path, text in files().items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: python -P -m sidejudge.dashboards"


@PROMTOOL.mark
@pytest.mark.parametrize("mode", ["adaptive", "point", "bound"])
def test_promtool_has_nothing_to_object_to(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        rule_file(Declaration(policy=Policy(mode=mode), window_ns=5400 * 10**9), "https://example.org/runbooks")
    )
    checked = promtool("check", "rules", "--lint=all", "--lint-fatal", str(path))
    assert checked.returncode == 0, checked.stdout


def test_every_condition_has_its_alert_with_its_severity() -> None:
    found = {rule["alert"]: rule["labels"]["severity"] for rule in RULES if "alert" in rule}
    for condition in conditions(Declaration()):
        assert found[condition.alert_name] == condition.severity.value


@pytest.mark.parametrize(
    ("others", "reported"),
    [({"warning": 9.0}, False), ({"warning": 2.0, "quantile": 0.5}, True), ({"below": True}, True)],
)
def test_limits_of_one_metric_that_no_one_threshold_states_go_by_the_processes(
    others: dict[str, Any], *, reported: bool
) -> None:
    limit = MetricLimit(name="latency_p95", measure="latency", quantile=0.95, warning=5.0, services=("a*",))
    declared = replace(BOUND, metrics=(limit, replace(limit, services=("b*",), **others)))
    [found] = [
        rule["expr"] for group in rules(declared)["groups"] for rule in group["rules"]
        if rule.get("alert") == "SidejudgeMetricWarning"
    ]  # fmt: skip
    assert ("sidejudge_limited_metric_status" in found) == reported


def test_no_series_is_recorded_twice() -> None:
    recorded = Counter((rule["record"], *sorted(rule.get("labels", {}).items())) for rule in RULES if "record" in rule)
    assert max(recorded.values()) == 1


def test_the_operators_form_holds_the_same_groups() -> None:
    stated = yaml.safe_load(prometheus_rule(Declaration()))
    assert stated["kind"] == "PrometheusRule"
    assert stated["spec"] == yaml.safe_load((FOLDER / "rules" / "sidejudge.rules.yaml").read_text())


@PROMTOOL.mark
def test_the_rules_do_what_the_stories_say(tmp_path: Path) -> None:
    found = outcomes(tmp_path, [(scenario, scenario.needs(RULES)) for scenario in SCENARIOS])
    assert {scenario.name: stated for scenario, stated in zip(SCENARIOS, found, strict=True) if stated} == {}


def test_what_a_story_gives_has_the_labels_that_a_monitor_exports() -> None:
    declared = {family.name: family for family in FAMILIES if family.kind != "info"}
    for scenario in SCENARIOS:
        for series in scenario.given:
            name, _, labels = series.partition("{")
            family = declared.get(name) or declared.get(re.sub("_(bucket|count)$", "", name))
            if family is not None:
                stated = set(re.findall(r'(\w+)="', labels)) - {*SITE, *target("a"), "le"}
                assert stated == set(family.labels), f"{scenario.name}: {series}"


def test_every_rule_is_in_a_story() -> None:
    without = {name_of(rule) for rule in RULES} ^ {name for scenario in SCENARIOS for name in scenario.under}
    assert not without, f"each rule needs a scenario under its name, and each scenario a rule: {sorted(without)}"


@PROMTOOL.mark
@pytest.mark.apart
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(_PARTS))
def test_every_small_mistake_in_a_rule_is_noticed(tmp_path: Path, part: int) -> None:
    # Rules of one form (the same bound over another window, by another number or for another level) come from one
    # function: the one of most stories is enough, and of these the soonest to fire.
    last = sorted(RULES, key=lambda rule: (len(stories(rule)), -seconds(rule.get("for", "0s"))))
    forms = {_OF_ONE_FORM.sub("", str(rule)): rule for rule in last}
    left = [(rule, dict(mutants(rule))) for rule in list(forms.values())[part::_PARTS]]
    assert sum(len(mutated) for _, mutated in left) > 300 / _PARTS
    for turn in range(max(len(stories(rule)) for rule in RULES)):
        tried = [each for each in left if stories(each[0])[turn:] and each[1]]
        left = [each for each in left if each not in tried]
        while tried:
            played = [beside_its_mutants(stories(rule)[turn], rule, mutated) for rule, mutated in tried]
            again = []
            for (rule, mutated), stated in zip(tried, outcomes(tmp_path, played), strict=True):
                unnoticed = those_unnoticed(mutated, stated)
                # One that cannot be evaluated ends the story for the others: they are played again.
                (again if unnoticed and re.search(r"\berr: ", stated) else left).append((rule, unnoticed))
            tried = again
    survived = "\n".join(
        f"{name_of(rule)} {rule.get('labels', '')}: {what}" for rule, mutated in left for what in mutated
    )
    assert not survived, f"no scenario notices these changes of rules; add series on both sides of each:\n{survived}"


def stories(rule: dict[str, Any]) -> list[Scenario]:
    """Those that a rule is in: first those that give most of what it reads, and are soon played."""
    read = set(re.findall(r"\w+(?::\w+)*", rule["expr"]))
    found = [each for each in SCENARIOS if name_of(rule) in each.under]
    return sorted(found, key=lambda each: each.cost / max(0.1, len(read & each.series) ** 2))


def beside_its_mutants(
    story: Scenario, rule: dict[str, Any], mutated: dict[str, Any]
) -> tuple[Scenario, list[dict[str, Any]]]:
    """A story in which a rule and its mutants are played at once. The rule is number 0: a copy goes as it should."""
    tried = [rule, *mutated.values()]
    under, affected = beside(story.needs(RULES), rule, tried)
    checks = [replace(each, expr=apart(each.expr, affected, n)) for each in story.checks for n in range(len(tried))]
    return replace(story, checks=tuple(checks)), under


def those_unnoticed(mutated: dict[str, Any], stated: str) -> dict[str, Any]:
    """Of a rule's mutants, those under which a story went as it should, by what promtool says of it."""
    if not stated:
        return mutated
    noticed = {int(number) for number in re.findall(r"_m(\d+)\b", stated)}
    assert noticed, stated
    assert 0 not in noticed, stated
    return {what: mutant for number, (what, mutant) in enumerate(mutated.items(), 1) if number not in noticed}
