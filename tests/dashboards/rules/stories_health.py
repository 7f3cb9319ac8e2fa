"""Health: monitors that lose traces, are silent, or are gone."""

from __future__ import annotations

from collections.abc import Iterator

from tests.dashboards.rules.scenario import (
    PLACE,
    SITE,
    Check,
    Scenario,
    constant,
    fires,
    on_both_pods,
    points,
    silent,
    target,
)


def stories() -> Iterator[Scenario]:
    yield from _health()


def _health() -> Iterator[Scenario]:
    kept, verdicts = "sidejudge_traces_kept_total", "sidejudge_verdicts_total"
    shop = {**SITE, "service": "shop"}
    alert = "SidejudgeMonitorSilent"

    def silence(name: str, drawn: float, judged: list[float], *checks: Check) -> Scenario:
        return Scenario(
            name=name,
            under=(alert,),
            given={
                **on_both_pods(kept, {**shop, "selection": "random"}, [drawn / 60] * 120),
                **on_both_pods(kept, {**shop, "selection": "forced"}, [drawn / 60] * 120),
                **on_both_pods(verdicts, {**PLACE, "selection": "random"}, judged),
                **on_both_pods(verdicts, {**PLACE, "selection": "forced"}, [0] * len(judged)),
                **on_both_pods(verdicts, {**PLACE, "environment": "dev", "selection": "random"}, [0] * len(judged)),
                **on_both_pods(verdicts, {**PLACE, "rubric": "entity", "selection": "random"}, [0] * len(judged)),
            },
            checks=checks,
        )

    yield silence(
        "twenty drawn and none judged", 21, [0] * 120, silent(alert, "43m"), fires(alert, "46m", severity="warning")
    )
    yield silence("nineteen drawn and none judged", 19, [0] * 120, silent(alert, "60m"))
    yield silence("one is judged", 21, [0.05] * 120, silent(alert, "60m"))
    yield silence("all is judged again", 21, [0] * 60 + [1] * 60, fires(alert, "74m"), silent(alert, "76m"))
    yield silence("judging ended half an hour ago", 21, [1] * 20 + [0] * 100, silent(alert, "63m"), fires(alert, "66m"))

    traces, alert = "sidejudge_traces_total", "SidejudgeTracesLost"

    def losses(name: str, lost: list[float], drawn: float, *checks: Check) -> Scenario:
        half = [each / 2 for each in lost]
        return Scenario(
            name=name,
            under=(alert,),
            given={
                **on_both_pods(traces, {**shop, "reason": "shed"}, half),
                **on_both_pods(traces, {**shop, "reason": "error"}, half),
                **on_both_pods(traces, {**shop, "reason": "scored"}, [0.1] * len(lost)),
                **on_both_pods(kept, {**shop, "selection": "random"}, [drawn * 0.75] * len(lost)),
                **on_both_pods(kept, {**shop, "selection": "forced"}, [drawn * 0.25] * len(lost)),
            },
            checks=checks,
        )

    yield losses(
        "six of a hundred are lost", [0.6] * 60, 10, silent(alert, "19m"), fires(alert, "25m", severity="warning")
    )
    yield losses("fewer than five of a hundred are lost", [0.48] * 60, 10, silent(alert, "50m"))
    yield losses("a few are lost of few", [0.19] * 60, 1, silent(alert, "50m"))
    yield losses("all are lost, and none has a verdict", [1] * 60, 0, fires(alert, "50m"))
    yield losses("less than a twentieth of what was drawn is lost", [0.52] * 60, 10, silent(alert, "50m"))
    yield losses("just enough are lost of few", [0.21] * 60, 1, fires(alert, "50m"))
    yield losses("a loss of long ago is over", [1] * 40 + [0] * 60, 10, fires(alert, "62m"), silent(alert, "72m"))

    refused, alert = "sidejudge_requests_refused_total", "SidejudgeRequestsRefused"

    def refusals(name: str, each: list[float], *checks: Check) -> Scenario:
        return Scenario(
            name=name, under=(alert,), given=on_both_pods(refused, {**SITE, "code": "413"}, each), checks=checks
        )

    yield refusals("requests are refused", [0.36] * 60, silent(alert, "20m"), fires(alert, "25m", severity="warning"))
    yield refusals("hardly any request is refused", [0.32] * 60, silent(alert, "50m"))
    yield refusals("refusals are over", [1] * 30 + [0] * 60, fires(alert, "52m"), silent(alert, "58m"))

    alert = "SidejudgeExportsFailing"

    def exports(name: str, failed: list[float], *checks: Check, handed: list[float] | None = None) -> Scenario:
        labels = {**SITE, "destination": "jsonl"}
        of_reasons = {**labels, "reason": "refused"}
        return Scenario(
            name=name,
            under=(alert,),
            given={
                **on_both_pods("sidejudge_exports_failed_total", of_reasons, failed),
                **on_both_pods("sidejudge_exports_total", labels, handed or [10] * len(failed)),
            },
            checks=checks,
        )

    yield exports(
        "six of a hundred are not accepted", [0.6] * 60, silent(alert, "10m"), fires(alert, "11m", severity="warning")
    )
    yield exports("fewer than five of a hundred are not accepted", [0.48] * 60, silent(alert, "50m"))
    yield exports("less is handed over than before", [0.6] * 60, fires(alert, "58m"), handed=[100] * 30 + [10] * 30)
    yield exports("all is accepted again", [10] * 30 + [0] * 60, fires(alert, "57m"), silent(alert, "62m"))

    yield from _connections()

    read, alert = "sidejudge_labels_read_timestamp_seconds", "SidejudgeLabelsUnread"
    going_on = [600.0 * number for number in range(60)]
    for name, of_a, of_b, checks in (
        ("one process reads them no more", going_on, [0.0] * 60, (silent(alert, "370m"), fires(alert, "380m"))),
        ("both read them no more", [0.0] * 60, [0.0] * 60, (silent(alert, "370m"), fires(alert, "380m"))),
        ("both read them", going_on, going_on, (silent(alert, "500m"),)),
        ("they are read again", [0.0] * 45 + going_on[45:], going_on,
         (fires(alert, "440m", severity="warning"), silent(alert, "450m"))),
    ):  # fmt: skip
        yield Scenario(
            name=f"of labels: {name}",
            under=(alert,),
            given={**points(read, {**SITE, **target("a")}, of_a), **points(read, {**SITE, **target("b")}, of_b)},
            checks=checks,
            step="10m",
        )

    for of, family, alert in (
        ("of a reload", "sidejudge_config_last_reload_successful", "SidejudgeConfigNotReloaded"),
        ("of a start", "sidejudge_config_valid", "SidejudgeConfigInvalid"),
    ):
        yield from _refused(of, family, alert)

    info, alert = "sidejudge_build_info", "SidejudgeMonitorDown"
    a, b = {**SITE, **target("a")}, {**SITE, **target("b")}
    yield Scenario(
        name="a monitor no longer answers",
        under=(alert,),
        given={
            **points("up", a, [1] * 10 + [0] * 40),
            **points(info, a, [1] * 10 + [None] * 40),
            **constant("up", b, 1),
            **constant(info, b, 1),
            **constant("up", {**SITE, "instance": "other:1"}, 0),
        },
        checks=(
            silent(alert, "19m"),
            fires(alert, "21m", severity="warning"),
            Check(at="30m", expr=f'count(ALERTS{{alertname="{alert}"}})', value=1),
        ),
    )
    yield Scenario(
        name="a monitor that never answered is known by its container",
        under=(alert,),
        given={
            **constant("up", {**a, "container": "sidejudge"}, 0),
            **constant("up", {**b, "container": "sidejudge"}, 1),
            **constant("up", {**SITE, "instance": "other:1"}, 0),
        },
        checks=(
            silent(alert, "9m"),
            fires(alert, "11m", instance="a:1"),
            Check(at="30m", expr=f'count(ALERTS{{alertname="{alert}"}})', value=1),
        ),
    )
    yield Scenario(
        name="what was down for more than a day is forgotten",
        under=(alert,),
        step="10m",
        given={**points("up", a, [1] * 3 + [0] * 200), **points(info, a, [1] * 3 + [None] * 200)},
        checks=(fires(alert, "20h"), silent(alert, "26h")),
    )
    alert = "SidejudgeMonitorAbsent"
    yield Scenario(
        name="no monitor is scraped",
        under=(alert,),
        given=points(info, a, [1] * 10 + [None] * 40),
        checks=(silent(alert, "10m"), silent(alert, "28m"), fires(alert, "30m", severity="warning")),
    )


def _connections() -> Iterator[Scenario]:
    """A destination that cannot be used, and one that takes less than is judged."""
    state, alert = "sidejudge_connection_state", "SidejudgeConnectionStalled"

    wrong, well = {"stopped": [1.0] * 40, "ok": [0.0] * 40}, {"ok": [1.0] * 40, "retrying": [0.0] * 40}
    back = {"retrying": [1.0] * 20 + [0.0] * 20, "ok": [0.0] * 20 + [1.0] * 20}
    once = Check(at="20m", expr=f'count(ALERTS{{alertname="{alert}"}})', value=1)
    for name, of_a, of_b, checks in (
        ("the keys are wrong in one process", wrong, well,
         (silent(alert, "9m"), fires(alert, "11m", severity="warning"))),
        ("the keys are wrong in both", wrong, wrong, (fires(alert, "11m"), once)),
        ("the server is away for a while", {"retrying": [1.0] * 8 + [0.0] * 32}, well, (silent(alert, "30m"),)),
        ("the server is away and comes back", back, well,
         (fires(alert, "19m"), fires(alert, "23m"), silent(alert, "27m"))),
        ("nothing was tried yet", {"starting": [1.0] * 40}, well, (silent(alert, "30m"),)),
    ):  # fmt: skip
        given: dict[str, str] = {}
        for pod, states in (("a", of_a), ("b", of_b)):
            for each, values in states.items():
                given |= points(state, {**SITE, **target(pod), "connection": "langfuse", "state": each}, values)
        yield Scenario(name=f"of a connection: {name}", under=(alert,), given=given, checks=checks)

    oldest, alert = "sidejudge_queue_oldest_timestamp_seconds", "SidejudgeExportsWaiting"
    once = Check(at="75m", expr=f'count(ALERTS{{alertname="{alert}"}})', value=1)
    standing, going_on = [0.0] * 90, [60.0 * number for number in range(90)]
    for name, queue, of_a, of_b, checks in (
        ("one process sends nothing", "langfuse", standing, going_on,
         (silent(alert, "69m"), fires(alert, "71m", severity="warning"))),
        ("neither sends anything", "otel_events", standing, standing,
         (silent(alert, "69m"), fires(alert, "71m"), once)),
        ("what waits changes", "langfuse", going_on, going_on, (silent(alert, "85m"),)),
        ("sessions wait for their turns", "sessions", standing, standing, (silent(alert, "85m"),)),
    ):  # fmt: skip
        yield Scenario(
            name=f"of what is to be sent: {name}",
            under=(alert,),
            given={
                **points(oldest, {**SITE, **target("a"), "queue": queue}, of_a),
                **points(oldest, {**SITE, **target("b"), "queue": queue}, of_b),
            },
            checks=checks,
        )


def _refused(of: str, family: str, alert: str) -> Iterator[Scenario]:
    """A configuration that is refused: one family that is 0 where it is."""
    valid = [1.0] * 60
    for name, of_a, of_b, checks in (
        ("one process refuses it", [1.0] * 5 + [0.0] * 55, valid, (silent(alert, "9m"), fires(alert, "11m"))),
        ("both refuse it", [0.0] * 60, [0.0] * 60, (fires(alert, "11m"),)),
        ("it is mended", [0.0] * 20 + valid, valid, (fires(alert, "15m", severity="warning"), silent(alert, "22m"))),
        ("it is mended at once", [1.0] * 5 + [0.0] * 3 + valid, valid, (silent(alert, "30m"),)),
    ):
        yield Scenario(
            name=f"{of}: {name}",
            under=(alert,),
            given={**points(family, {**SITE, **target("a")}, of_a), **points(family, {**SITE, **target("b")}, of_b)},
            checks=checks,
        )
