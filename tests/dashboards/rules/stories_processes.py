"""Processes: what is taken from gauges of single processes, and limits of theirs."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.dashboards.rules.recordings import TRUE_NEGATIVE, TRUE_POSITIVE, corrected
from tests.dashboards.rules.scenario import (
    PLACE,
    RUBRIC,
    SITE,
    Scenario,
    constant,
    fires,
    is_number,
    limit_of,
    on_both_pods,
    points,
    silent,
    target,
)


def stories() -> Iterator[Scenario]:
    yield from _from_processes()
    yield from _held_back()
    yield from _agreement()
    yield from _corrected()
    yield from _limits()


def _from_processes() -> Iterator[Scenario]:
    for change, alert, severity in (
        ("sidejudge_change_timestamp_seconds", "SidejudgePassRateChange", "warning"),
        ("sidejudge_scenario_drift_timestamp_seconds", "SidejudgeScenarioDrift", "info"),
    ):
        yield Scenario(
            name=f"{alert} is there a look after one process has it, with the earliest time",
            under=(alert,),
            given={
                **points(change, {**PLACE, **target("a")}, [None] * 5 + [240] * 5 + [None] * 10),
                **points(change, {**PLACE, **target("b")}, [None] * 7 + [300] * 3 + [None] * 10),
            },
            checks=(
                silent(alert, "5m"),
                fires(alert, "6m", severity=severity),
                fires(alert, "9m"),
                fires(alert, "17m"),
                silent(alert, "21m"),
            ),
        )
    for by, other, alert in (
        ("version", "metadata.tenant", "SidejudgeVersionWorse"), ("metadata.tenant", "model", "SidejudgeSliceWorse"),
    ):  # fmt: skip
        name, part = "sidejudge_slice_worse_timestamp_seconds", {**PLACE, "slice": by, "value": "x"}
        yield Scenario(
            name=f"{alert} is there while a process has it, for its parts of the traffic, and lasts a little longer",
            under=(alert,),
            given={
                **points(name, {**part, **target("a")}, [None] * 5 + [240] * 5 + [None] * 40),
                **points(name, {**part, **target("b")}, [None] * 7 + [300] * 3 + [None] * 40),
                **points(name, {**PLACE, "slice": other, "value": "y", **target("a")}, [240] * 50),
            },
            checks=(
                silent(alert, "5m"), fires(alert, "6m", severity="warning"), fires(alert, "24m"), silent(alert, "30m"),
            ),
        )  # fmt: skip
    for id_, alert in (
        ("metric_mean_low", "SidejudgeMetricMeanLow"),
        ("judge_drift", "SidejudgeJudgeDrift"),
        ("store_trouble", "SidejudgeStoreTrouble"),
    ):
        labels = {**SITE, "alert": id_, "severity": "warning"}
        reported = {
            **points("sidejudge_alerts", {**labels, "stage": "firing", **target("a")}, [0] * 5 + [2] * 5 + [0] * 30),
            **points("sidejudge_alerts", {**labels, "stage": "firing", **target("b")}, [0] * 5 + [1] * 5 + [0] * 30),
            **constant("sidejudge_alerts", {**labels, "stage": "pending", **target("b")}, 0),
            **constant("sidejudge_alerts", {**labels, "severity": "info", "stage": "firing", **target("b")}, 0),
            **constant("sidejudge_alerts", {**labels, "alert": "other", "stage": "firing", **target("b")}, 9),
        }
        yield Scenario(
            name=f"{alert} is raised from what processes say",
            under=(alert,),
            given=reported,
            checks=(
                silent(alert, "4m"),
                fires(alert, "5m", severity="warning"),
                fires(alert, "13m"),
                silent(alert, "15m"),
            ),
        )
    breaker, alert = "sidejudge_judge_breaker_state", "SidejudgeJudgeUnreachable"

    def judges(models: int = 2, states: tuple[str, ...] = ("open",), **since: int) -> dict[str, str]:
        """Breakers that leave ``closed`` at a minute and are back at minute 20; the states follow each other."""
        found = {}
        for model in [f"m{n + 1}" for n in range(models)]:
            for pod in ("a", "b"):
                out = [since.get(model + pod, 99) <= minute < 20 for minute in range(40)]
                now = [states[minute % len(states)] if gone else "closed" for minute, gone in enumerate(out)]
                for state in ("closed", "open", "half_open"):
                    labels = {**SITE, "model": model, "state": state, **target(pod)}
                    found |= points(breaker, labels, [float(each == state) for each in now])
        return found

    yield Scenario(
        name="no judge can be asked by one process",
        under=(alert,),
        given=judges(m1a=2, m2a=3),
        checks=(silent(alert, "6m"), fires(alert, "7m", severity="warning"), fires(alert, "19m"), silent(alert, "21m")),
    )
    yield Scenario(
        name="no judge can be asked by any process",
        under=(alert,),
        given=judges(m1a=2, m2a=3, m1b=2, m2b=3),
        checks=(fires(alert, "9m"),),
    )
    yield Scenario(
        name="two of five judges cannot be asked, and others elsewhere",
        under=(alert,),
        given=judges(5, m1a=2, m2a=2, m3b=2, m4b=2),
        checks=(silent(alert, "15m"),),
    )
    yield Scenario(
        name="two of three judges are no majority any more",
        under=(alert,),
        given=judges(3, m1a=2, m2a=3),
        checks=(fires(alert, "9m"),),
    )
    yield Scenario(
        name="one of two judges cannot be asked, and two are a majority of two",
        under=(alert,),
        given=judges(m2b=2),
        checks=(fires(alert, "9m"),),
    )
    yield Scenario(
        name="a provider that hangs keeps the breaker half open now and then, and is not back in between",
        under=(alert,),
        given=judges(1, ("open", "half_open", "half_open"), m1a=2, m1b=2),
        checks=(silent(alert, "6m"), fires(alert, "7m"), fires(alert, "19m"), silent(alert, "21m")),
    )
    yield Scenario(
        name="the alert about the judge outlasts its outage by a minute",
        under=(alert,),
        given=judges(m1b=2, m2b=3),
        checks=(fires(alert, "20m"), silent(alert, "21m")),
    )


def _held_back() -> Iterator[Scenario]:
    """A warning that every process which has it holds back, until one sends it."""
    worse = "sidejudge_slice_worse_timestamp_seconds"
    for id_, alert, name, part in (
        ("pass_rate_change", "SidejudgePassRateChange", "sidejudge_change_timestamp_seconds", {}),
        ("scenario_drift", "SidejudgeScenarioDrift", "sidejudge_scenario_drift_timestamp_seconds", {}),
        ("version_worse", "SidejudgeVersionWorse", worse, {"slice": "version", "value": "x"}),
        ("slice_worse", "SidejudgeSliceWorse", worse, {"slice": "metadata.tenant", "value": "x"}),
    ):
        labels = {**PLACE, "metric": "", "slice": "", "value": "", **part, "alert": id_}
        yield Scenario(
            name=f"{alert} is there once one process sends it, and where none says whether it does",
            under=(alert,),
            given={
                **constant(name, {**PLACE, **part, **target("a")}, 240, 70),
                # Nobody says so before the process's next look.
                **points(
                    "sidejudge_alert_reported", {**labels, **target("a")}, [None] + [0] * 19 + [None] * 10 + [0] * 20
                ),
                **points("sidejudge_alert_reported", {**labels, **target("b")}, [None] * 10 + [1] * 10 + [None] * 40),
                **constant("sidejudge_alert_reported", {**labels, "alert": "another", **target("b")}, 0, 60),
            },
            checks=(
                *(silent(alert, at) for at in ("0m", "1m", "10m")),
                fires(alert, "11m"),
                fires(alert, "19m"),
                silent(alert, "53m"),  # a process that is away holds it back
                fires(alert, "56m"),
            ),
        )


def _agreement() -> Iterator[Scenario]:
    alert, upper, pairs = (
        "SidejudgeJudgeAgreementLow",
        "sidejudge_agreement_kappa_upper_ratio",
        "sidejudge_agreement_pairs",
    )

    def reported(pod: str, kappa: list[float], n: float, metric: str = "pass") -> dict[str, str]:
        labels = {**RUBRIC, "metric": metric, **target(pod)}
        return {**points(upper, labels, kappa), **constant(pairs, labels, n)}

    falling = [0.7] * 5 + [0.5] * 10 + [0.7] * 30
    for name, given, check in (
        ("one process finds little agreement", {**reported("a", falling, 30), **reported("b", [0.8] * 45, 31)}, True),
        ("both do", {**reported("a", falling, 37), **reported("b", falling, 37)}, True),
        ("there are few labels", {**reported("a", falling, 29), **reported("b", [0.8] * 45, 200)}, False),
        ("a single metric is judged otherwise", reported("a", falling, 100, "tone"), False),
        ("people agree", reported("a", [0.61] * 45, 100), False),
    ):
        checks = [silent(alert, "4m"), fires(alert, "5m", rubric="qa", severity="warning"), silent(alert, "40m")]
        yield Scenario(
            name=f"of kappa: {name}",
            under=(alert,),
            given={**limit_of("judge_agreement_low", 0.6), **given},
            checks=tuple(checks) if check else (silent(alert, "12m"),),
        )


def _corrected() -> Iterator[Scenario]:
    positive, negative = (f"sidejudge_agreement_true_{kind}_ratio" for kind in ("positive", "negative"))
    passes, record = "service_environment_rubric:sidejudge_pass:ratio_increase1h", corrected("1h")

    def labels(pod: str, rates: tuple[float, float], metric: str = "pass", rubric: str = "qa") -> dict[str, str]:
        of = {**SITE, "rubric": rubric, "metric": metric, **target(pod)}
        return {**constant(positive, of, rates[0], 9), **constant(negative, of, rates[1], 9)}

    def reported(
        name: str, ratio: float, a: tuple[float, float], b: tuple[float, float], want: float | None
    ) -> Scenario:
        return Scenario(
            name=f"of what people would have passed: {name}",
            under=(record, TRUE_POSITIVE, TRUE_NEGATIVE),
            given={
                **labels("a", a), **labels("b", b), **labels("a", (0.51, 0.52), "accuracy"),
                **labels("a", (0.6, 0.61), rubric="entity"), **constant(passes, PLACE, ratio, 9),
                **constant(passes, {**PLACE, "environment": "dev"}, ratio / 2, 9),
                **constant(passes, {**PLACE, "rubric": "text"}, 0.5, 9),
            },
            checks=(
                is_number(TRUE_POSITIVE, "5m", (a[0] + b[0]) / 2, rubric="qa", metric="", instance=""),
                is_number(TRUE_NEGATIVE, "5m", (a[1] + b[1]) / 2, rubric="qa", metric="", instance=""),
                is_number(record, "5m", want, **PLACE, metric="", instance=""),
                is_number(record, "5m", None, rubric="text"),
            ),
        )  # fmt: skip

    yield reported("the judge is lenient", 0.8, (0.9, 0.7), (0.9, 0.7), 0.5 / 0.6)
    yield reported("processes have read to different times", 0.8, (0.9, 0.6), (0.8, 0.8), 0.5 / 0.55)
    yield reported("never more than all", 0.95, (0.9, 0.7), (0.9, 0.7), 1)
    yield reported("never fewer than none", 0.2, (0.9, 0.7), (0.9, 0.7), 0)
    yield reported("the judge tells nothing apart", 0.8, (0.5, 0.5), (0.5, 0.5), None)
    yield reported("the judge says the opposite", 0.8, (0.4, 0.3), (0.4, 0.3), None)


def _limits() -> Iterator[Scenario]:
    hour = {**SITE, "period": "hour"}
    alert = "SidejudgeJudgeBudget"
    for spent, other, reported in (
        (9.1, 1, fires(alert, "5m", severity="warning")),
        (9.1, 9.2, fires(alert, "5m")),
        (8.9, 1, silent(alert, "5m")),
    ):
        yield Scenario(
            name=f"{spent} and {other} of a budget of 10",
            under=(alert,),
            given={
                **limit_of("judge_budget", 0.9),
                **constant("sidejudge_judge_budget_spent_usd", {**hour, **target("a")}, spent),
                **constant("sidejudge_judge_budget_limit_usd", {**hour, **target("a")}, 10),
                **constant("sidejudge_judge_budget_spent_usd", {**hour, **target("b")}, other),
                **constant("sidejudge_judge_budget_limit_usd", {**hour, **target("b")}, 10),
            },
            checks=(reported,),
        )
    alert = "SidejudgeSpoolLarge"
    for size, other, reported in (
        (101, 1, fires(alert, "5m", severity="warning")),
        (101, 102, fires(alert, "5m")),
        (99, 1, silent(alert, "5m")),
    ):
        yield Scenario(
            name=f"stores of {size} and {other} bytes of 100",
            under=(alert,),
            given={
                **limit_of("spool_large", 100),
                **constant("sidejudge_spool_bytes", {**SITE, **target("a")}, size),
                **constant("sidejudge_spool_bytes", {**SITE, **target("b")}, other),
            },
            checks=(silent(alert, "4m"), reported),
        )
    alert, lag = "SidejudgeEvaluationLag", "sidejudge_evaluation_lag_seconds"

    def lags(late: float, prompt: float, minutes: int = 60, until: int = 60, *, after: bool = False) -> dict[str, str]:
        found: dict[str, str] = {}
        # One service is prompt and large, the other has all that is late.
        for service, own_prompt, own_late in (("bank", prompt * 0.9, 0.0), ("shop", prompt * 0.1, late)):
            for le, growth in (
                ("60", own_prompt),
                ("300", own_prompt),
                ("600", own_prompt + own_late),
                ("+Inf", own_prompt + own_late),
                (None, own_prompt + own_late),
            ):
                labels = {**SITE, "service": service, **({"le": le} if le else {})}
                grown = [growth if n < until else (9 * (own_late == 0) if after else 0) for n in range(minutes)]
                found |= on_both_pods(f"{lag}_{'bucket' if le else 'count'}", labels, grown)
        return found

    yield Scenario(
        name="six of a hundred verdicts come later than the limit",
        under=(alert,),
        given={**limit_of("evaluation_lag", 300), **lags(0.6, 9.4)},
        checks=(silent(alert, "10m"), fires(alert, "11m", severity="warning")),
    )
    yield Scenario(
        name="four of a hundred verdicts come later than the limit",
        under=(alert,),
        given={**limit_of("evaluation_lag", 300), **lags(0.4, 9.6)},
        checks=(silent(alert, "30m"),),
    )
    for count, reported in ((5.2, fires(alert, "50m")), (4.8, silent(alert, "50m"))):
        yield Scenario(
            name=f"{count} late verdicts in ten minutes",
            under=(alert,),
            given={**limit_of("evaluation_lag", 300), **lags(count / 10, 0)},
            checks=(reported,),
        )
    yield Scenario(
        name="verdicts are in time again",
        under=(alert,),
        given={**limit_of("evaluation_lag", 300), **lags(1, 0, 90, 20)},
        checks=(fires(alert, "39m"), silent(alert, "41m")),
    )
    behind = "sidejudge_judging_behind_seconds"
    for waits, checks in (
        (301, (fires(alert, "15m", severity="warning"), fires(alert, "45m"))),
        (299, (silent(alert, "30m"),)),
    ):
        yield Scenario(
            name=f"traces have waited for {waits} s to be judged, at one monitor for longer, and nothing was judged",
            under=(alert,),
            given={
                **limit_of("evaluation_lag", 300),
                **points(behind, {**SITE, **target("a")}, [0] * 4 + [waits + 0.5] * 20 + [0] * 40),
                **points(behind, {**SITE, **target("b")}, [0] * 4 + [waits] * 60),
            },
            checks=(silent(alert, "13m"), *checks),
        )
    yield Scenario(
        name="late verdicts are followed by many that are in time",
        under=(alert,),
        given={**limit_of("evaluation_lag", 300), **lags(1, 0, 90, 20, after=True)},
        checks=(fires(alert, "39m"), silent(alert, "45m")),
    )
