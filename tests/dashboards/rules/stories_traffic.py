"""Traffic: anomalies that monitors report about what arrives."""

from __future__ import annotations

from collections.abc import Iterator

from tests.dashboards.rules.scenario import SITE, Scenario, constant, fires, points, silent, target

ALERT = "SidejudgeTrafficSuspected"
CLAIMS = {**SITE, "kind": "disbelieved_claims"}
TORN = {**SITE, "kind": "split_traces"}
NAME = "sidejudge_traffic_suspected"


def stories() -> Iterator[Scenario]:
    yield Scenario(
        name="one of two monitors reports an anomaly",
        under=(ALERT,),
        given={
            **constant(NAME, {**CLAIMS, **target("a")}, 1),
            **constant(NAME, {**CLAIMS, **target("b")}, 0),
            **constant(NAME, {**TORN, **target("a")}, 0),
        },
        checks=(silent(ALERT, "9m"), fires(ALERT, "12m", severity="warning", kind="disbelieved_claims")),
    )
    yield Scenario(
        name="both monitors report an anomaly",
        under=(ALERT,),
        given={**constant(NAME, {**CLAIMS, **target("a")}, 1), **constant(NAME, {**CLAIMS, **target("b")}, 1)},
        checks=(fires(ALERT, "13m", severity="warning"),),
    )
    yield Scenario(
        name="an anomaly has ended",
        under=(ALERT,),
        given=points(NAME, {**CLAIMS, **target("a")}, [1] * 20 + [0] * 60),
        checks=(fires(ALERT, "33m", severity="warning", kind="disbelieved_claims"), silent(ALERT, "36m")),
    )
