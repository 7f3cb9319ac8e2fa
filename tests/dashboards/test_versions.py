"""The marks of versions on dashboards, as Prometheus evaluates them."""

from __future__ import annotations

import json
import subprocess

import pytest

from sidejudge.dashboards.grafana.firing import version_change
from tests.dashboards.rules.scenario import PLACE, Check, Scenario, counted, on_both_pods, points
from tests.needs import PROMTOOL

NAME = "sidejudge_application_traces_total"
WHERE = {label: PLACE[label] for label in ("cluster", "namespace", "job", "service", "environment")}
MARKED = version_change('job=~".*"')


def version(name, growth):
    return on_both_pods(NAME, {**WHERE, "version": name}, growth)


def late(name, start, growth):
    """A version whose series begin with its first traces."""
    (series,) = counted(NAME, {**WHERE, "version": name, "pod": "a"}, growth).items()
    return {series[0]: f"_x{start} {series[1]}"}


GROWS = [10] * 180
STORIES = {
    "a rollout, once": (
        version("1", [10] * 90 + [0] * 90) | late("2", 90, [10] * 90),
        {"85m": {}, "91m": {"2": 1}, "94m": {"2": 1}, "96m": {}, "120m": {}},
    ),
    "a rollback to a version whose series is still there": (
        version("1", [10] * 60 + [0] * 40 + [10] * 80) | version("2", [0] * 60 + [10] * 40 + [0] * 80),
        {"99m": {}, "104m": {"1": 1}, "120m": {}},
    ),
    "a canary, when it appears": (
        version("1", GROWS) | late("2", 90, [1] * 90),
        {"89m": {}, "92m": {"2": 1}, "100m": {}, "150m": {}},
    ),
    "a canary that takes over": (
        version("1", [10] * 120 + [0] * 60) | version("2", [1] * 120 + [10] * 60),
        {"119m": {}, "124m": {"2": 1}, "130m": {}},
    ),
    "two versions that share the traffic": (
        version("1", [10, 4] * 90) | version("2", [4, 10] * 90),
        {"70m": {}, "71m": {}, "120m": {}},
    ),
    "a monitor that was away for some minutes": (
        points(NAME, {**WHERE, "version": "1"}, [*range(0, 900, 10), *[None] * 12, *range(0, 600, 10)]),
        {"102m": {}, "103m": {}, "110m": {}},
    ),
    "a service that is seen for the first time": (late("1", 90, GROWS[:60]), {"91m": {}, "95m": {}, "120m": {}}),
    "traces that name no version": (
        version("1", GROWS) | late("unknown", 90, [40] * 90) | late("__other__", 100, [90] * 60),
        {"91m": {}, "101m": {}, "130m": {}},
    ),
}


@PROMTOOL.mark
@pytest.mark.parametrize("name", STORIES)
def test_a_version_is_marked_when_it_takes_over(tmp_path, name):
    given, expected = STORIES[name]
    checks = [Check(at=at, expr=f"sum({MARKED}) by (version)", value=None) for at in expected]
    document = Scenario(name=name, under=(), given=given, checks=tuple(checks)).document("rules")
    for test, marks in zip(document["tests"][0]["promql_expr_test"], expected.values(), strict=True):
        test["exp_samples"] = [{"labels": f'{{version="{each}"}}', "value": 1} for each in marks]
    (tmp_path / "rules").write_text(json.dumps({"groups": []}))
    (tmp_path / "test").write_text(json.dumps(document))
    done = subprocess.run(
        [PROMTOOL.path(), "test", "rules", str(tmp_path / "test")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
