"""Long: windows of hours and days, and what is not known any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sidejudge.dashboards.rules import recordings as r
from tests.dashboards.rules.scenario import (
    PLACE,
    RUBRIC,
    SITE,
    THRESHOLDS,
    Check,
    Scenario,
    constant,
    fires,
    is_number,
    on_both_pods,
    points,
    silent,
    target,
)


def stories() -> Iterator[Scenario]:
    yield from _day()
    yield from _unanswered()
    yield from _averted()
    yield from _burning()
    yield from _unknown()
    yield from _tool_failing()


def _tool_failing() -> Iterator[Scenario]:
    alert = "SidejudgeToolFailing"
    tool = {**SITE, "service": "shop", "tool": "search"}

    def failing(name: str, failed: list[float], calls: float, *checks: Check) -> Scenario:
        return Scenario(
            name=name,
            under=(alert,),
            given={
                **on_both_pods("sidejudge_tool_errors_total", tool, failed),
                **on_both_pods("sidejudge_tool_calls_total", tool, [calls] * len(failed)),
            },
            checks=checks,
        )

    raised = fires(alert, "75m", severity="warning")
    yield failing("a third of the calls fail", [0.33] * 90, 1, silent(alert, "40m"), raised)
    yield failing("three of ten calls fail", [0.29] * 90, 1, silent(alert, "80m"))
    yield failing("all of a few calls fail", [0.16] * 90, 0.16, silent(alert, "80m"))
    yield failing("just enough calls fail", [0.17] * 90, 0.17, fires(alert, "80m"))
    yield failing("a tool has recovered", [1] * 60 + [0] * 120, 1, fires(alert, "110m"), silent(alert, "125m"))
    yield failing("a tool has just recovered", [1] * 60 + [0] * 120, 1, fires(alert, "116m"))
    yield failing("a tool has just begun to fail", [0] * 60 + [1] * 60, 1, silent(alert, "86m"), fires(alert, "92m"))


def _day() -> Iterator[Scenario]:
    alert = "SidejudgePassRateSustained"
    for upper, failures, is_raised in ((0.84, 3, True), (0.86, 3, False), (0.84, 2.9, False)):
        reported = fires(alert, "60m", severity="warning") if is_raised else silent(alert, "60m")
        yield Scenario(
            name=f"a day's upper bound of {upper} with {failures} failures",
            under=(alert,),
            given={
                **THRESHOLDS,
                **constant(r.upper("1d", 99), PLACE, upper),
                **constant(r.failures("1d"), PLACE, failures),
            },
            checks=(silent(alert, "58m"), reported),
        )
    yield Scenario(
        name="the alert of the day lasts for an hour",
        under=(alert,),
        given={
            **THRESHOLDS,
            **points(r.upper("1d", 99), PLACE, [0.8] * 70 + [0.9] * 100),
            **constant(r.failures("1d"), PLACE, 9),
        },
        checks=(fires(alert, "128m"), silent(alert, "130m")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Burn:
    long: str
    short: str
    wait: int
    severity: str

    @property
    def unit(self) -> int:
        return 10 if self.wait >= 60 else 1


def _burn(
    of: Burn, name: str, thresholds: Mapping[str, str], over: float, lately: float, failures: float, *, fired: bool
) -> Scenario:
    alert, at = "SidejudgeErrorBudgetBurn", f"{of.wait}m"
    reported = fires(alert, at, long=of.long, severity=of.severity) if fired else silent(alert, at, long=of.long)
    return Scenario(
        name=f"{name} over {of.long}",
        under=(alert,),
        step=f"{of.unit}m",
        given={
            **thresholds,
            **constant(r.failed_ratio(of.long), PLACE, over),
            **constant(r.failed_ratio(of.short), PLACE, lately),
            **constant(r.failures(of.long), PLACE, failures),
        },
        checks=(silent(alert, f"{of.wait - of.unit}m", long=of.long), reported),
    )


def _burning() -> Iterator[Scenario]:
    alert = "SidejudgeErrorBudgetBurn"
    tight, loose = (
        {
            **constant(r.THRESHOLD, {**RUBRIC, "level": "warning"}, warning),
            **constant(r.THRESHOLD, {**RUBRIC, "level": "critical"}, warning / 2),
        }
        for warning in (0.99, 0.02)
    )
    for long, short, factor, least, wait, severity in (
        ("1h", "5m", 14.4, 5, 2, "critical"),
        ("6h", "30m", 6, 10, 15, "critical"),
        ("3d", "6h", 1, 20, 180, "warning"),
    ):
        alert_of = Burn(long=long, short=short, wait=wait, severity=severity)
        limit, unit = factor * 0.01, alert_of.unit

        yield _burn(alert_of, "a budget burns", tight, limit * 1.05, limit * 1.05, least, fired=True)
        yield _burn(
            alert_of, "a budget burns not quite fast enough", tight, limit * 0.95, limit * 1.05, least, fired=False
        )
        yield _burn(alert_of, "a budget burns no more", tight, limit * 1.05, limit * 0.95, least, fired=False)
        yield _burn(
            alert_of, "a budget burns by few failures", tight, limit * 1.05, limit * 1.05, least - 0.1, fired=False
        )
        yield _burn(alert_of, "a threshold that no burn could reach is capped", loose, 0.91, 0.91, least, fired=True)
        yield _burn(alert_of, "a share below the cap does not burn", loose, 0.89, 0.91, least, fired=False)
        yield _burn(alert_of, "a share lately below the cap does not burn", loose, 0.91, 0.89, least, fired=False)
        yield Scenario(
            name=f"a budget that burns over {long} is told for a quarter of an hour more",
            under=(alert,),
            given={
                **tight,
                **points(r.failed_ratio(long), PLACE, [0.5] * (wait // unit + (5 if unit == 1 else 3)) + [0.0] * 60),
                **constant(r.failed_ratio(short), PLACE, 0.5),
                **constant(r.failures(long), PLACE, 99),
            },
            checks=(
                fires(alert, f"{wait + (18 if unit == 1 else 30)}m", long=long),
                silent(alert, f"{wait + (20 if unit == 1 else 50)}m", long=long),
            ),
            step=f"{unit}m",
        )


def _unanswered() -> Iterator[Scenario]:
    """Traces without an answer at two processes for an hour: more of them, fewer, and none at the full hour."""
    name, none = "sidejudge_unanswered_traces", [None] * 100
    slow = [f'sidejudge_behind_traces{{like="{like}"}}' for like in ("passed", "failed")]
    for window in ("5m", "30m", "1h", "6h", r.DAY, "3d"):
        short = window in ("5m", "30m", "1h")
        for how, a, b, at_20, at_26, at_58, at_98 in (
            ("more", [1.5] * 5 + [6] * 54, [0.5] * 5 + [2] * 54, 8, 8, 8, None if short else 10),
            ("fewer", [6] * 30 + [5] * 29, [2] * 59, 8, 8, 7 if short else 8, None if short else 15),
            ("late", [None] * 5 + [6] * 54, [None] * 5 + [2] * 54, 8, 8, 8, None if short else 8),
            ("brief", [1.5] * 5 + [6] * 15, [0.5] * 5 + [6] * 15, 12, *[None if short else 2] * 3),
            ("late and brief", [None] * 5 + [6] * 15, [None] * 5 + [2] * 15, 8, None, None, None),
        ):
            for record, series, beside in (
                (r.unanswered, (name, name), ()), (r.open_, (name, slow[0]), ()),
                (r.like_failed, (slow[1], slow[1]), (name, slow[0])),
            ):  # fmt: skip
                given: dict[str, str] = {}
                for each, pod, values in (
                    (series[0], "a", a), (series[1], "b", b), *((each, pod, a) for each in beside for pod in "ab"),
                ):  # fmt: skip
                    family, _, like = each.partition("{")
                    labels = {"like": like.split('"')[1]} if like else {}
                    given |= points(family, {**PLACE, **labels, **target(pod)}, [*values, *none])
                yield Scenario(
                    name=f"{record(window)}, {how} in time", under=(record(window),), given=given,
                    checks=(
                        *(
                            is_number(record(window), at, value)
                            for at, value in (("20m", at_20), ("26m", at_26), ("58m", at_58), ("98m", at_98))
                        ),
                        *(
                            Check(at=at, expr=f'count({record(window)}{{like=""}})', value=value and 1)
                            for at, value in (("20m", at_20), ("58m", at_58))
                        ),
                    ),
                )  # fmt: skip


def _averted() -> Iterator[Scenario]:
    """Alerts that traces without an answer could avert do not begin; one that fires goes on."""
    day, burn = "SidejudgePassRateSustained", "SidejudgeErrorBudgetBurn"

    def weighed(window: str, failed: float) -> dict[str, str]:
        return {**constant(r.weight(window), PLACE, 100), **constant(r.failed_weight(window), PLACE, failed)}

    for number in (33, 34):  # 20 of 133 or 134 fail: 0.8496 or 0.8507 may pass
        yield Scenario(
            name=f"a day's alert beside {number} traces without an answer",
            under=(day,),
            given={
                **THRESHOLDS, **constant(r.upper("1d", 99), PLACE, 0.84), **constant(r.failures("1d"), PLACE, 20),
                **weighed("1d", 20), **constant(r.open_("1d"), PLACE, number),
            },
            checks=(fires(day, "62m", severity="warning") if number == 33 else silent(day, "62m"),),
        )  # fmt: skip
    for number in (4, 5):  # 24 of 160 fail, or 25
        yield Scenario(
            name=f"a day's alert beside 60 traces without an answer, {number} of them like those that a judge refuted",
            under=(day,),
            given={
                **THRESHOLDS, **constant(r.upper("1d", 99), PLACE, 0.84), **constant(r.failures("1d"), PLACE, 20),
                **weighed("1d", 20), **constant(r.open_("1d"), PLACE, 60),
                **constant(r.like_failed("1d"), PLACE, number),
            },
            checks=(silent(day, "62m") if number == 4 else fires(day, "62m"),),
        )  # fmt: skip
    yield Scenario(
        name="a day's alert that fires goes on in an outage",
        under=(day,),
        given={
            **THRESHOLDS, **constant(r.upper("1d", 99), PLACE, 0.84), **constant(r.failures("1d"), PLACE, 20),
            **weighed("1d", 20), **points(r.unanswered("1d"), PLACE, [None] * 70 + [1_000] * 140),
        },
        checks=(fires(day, "68m"), fires(day, "200m")),
    )  # fmt: skip
    for number in (8, 7):  # of 100 verdicts 90 pass, of which the upper bound is 0.91: 0.843 or 0.851 beside those
        yield Scenario(
            name=f"a day's alert ends beside {number} traces without an answer only if they could not uphold it",
            under=(day,),
            given={
                **THRESHOLDS, **points(r.upper("1d", 99), PLACE, [0.84] * 70 + [0.91] * 140), **weighed("1d", 10),
                **constant(r.failures("1d"), PLACE, 20), **constant(r.pass_ratio("1d"), PLACE, 0.9),
                **points(r.unanswered("1d"), PLACE, [None] * 70 + [number] * 140),
            },
            checks=(fires(day, "68m"), fires(day, "200m") if number == 8 else silent(day, "200m")),
        )  # fmt: skip
    for warning, limits in ((0.99, (0.144, 0.06, 0.01)), (0.02, (0.9, 0.9, 0.9))):
        of = zip((("1h", "5m", 2), ("6h", "30m", 15), ("3d", "6h", 180)), limits, strict=True)
        for (long, short, wait), limit in of:
            given = {
                **constant(r.THRESHOLD, {**RUBRIC, "level": "warning"}, warning),
                **constant(r.THRESHOLD, {**RUBRIC, "level": "critical"}, warning / 2),
                **constant(r.failed_ratio(long), PLACE, 0.99), **constant(r.failed_ratio(short), PLACE, 0.99),
                **constant(r.failures(long), PLACE, 99), **weighed(long, 110 * limit),
            }  # fmt: skip
            for number in (9, 11):
                at = f"{wait + 4}m"
                yield Scenario(
                    name=f"a budget of {1 - warning:g} over {long} beside {number} traces without an answer",
                    under=(burn,),
                    given={**given, **constant(r.open_(long), PLACE, number)},
                    checks=(fires(burn, at, long=long) if number == 9 else silent(burn, at, long=long),),
                )
                refuted = (31 - number) * limit
                yield Scenario(
                    name=f"a budget of {1 - warning:g} over {long} beside 30 traces, {refuted:g} of them like refuted",
                    under=(burn,),
                    given={
                        **given, **constant(r.open_(long), PLACE, 30), **constant(r.like_failed(long), PLACE, refuted),
                    },
                    checks=(fires(burn, at, long=long) if number == 9 else silent(burn, at, long=long),),
                )  # fmt: skip
            if warning == 0.99 and wait < 180:
                yield Scenario(
                    name=f"a budget that burns over {long} goes on burning in an outage",
                    under=(burn,),
                    given={**given, **points(r.unanswered(long), PLACE, [None] * 30 + [1_000] * 180)},
                    checks=(fires(burn, "28m", long=long), fires(burn, "200m", long=long)),
                )
            yield from _upheld(Burn(long=long, short=short, wait=wait, severity=""), limit, given)


def _upheld(of: Burn, limit: float, given: Mapping[str, str]) -> Iterator[Scenario]:
    """A burn that fires goes on while failures of what has no answer could keep it, within a day of the last ratio."""
    burn, unit = "SidejudgeErrorBudgetBurn", min(of.unit, 4)  # what fires is forgotten after five minutes
    fired = of.wait // unit + 5
    edge = (100 * limit - 0.5) / (1 - limit)  # beside failures that stand for half a trace of a hundred
    for name, many, few, ratio in (
        ("both windows", 1.05, 1.05, None), ("what words decide passes", 1.05, 1.05, 0.0),
        ("not the long one", 0.95, 99.0, None), ("not the short one", 99.0, 0.95, 0.0), ("it never did", 99.0, 99.0, 0),
    ):  # fmt: skip
        never = name == "it never did"
        goes_on = min(many, few) > 1 and not never
        ends = f"{(fired + 10) * unit + 20}m"
        yield Scenario(
            name=f"a budget of {limit:g} that burnt over {of.long}: {name}",
            under=(burn,),
            step=f"{unit}m",
            given={
                **given,
                **{key: value for window in (of.long, of.short) for key, value in (
                    *constant(r.weight(window), PLACE, 100, 400).items(),
                    *constant(r.failed_weight(window), PLACE, 0.5, 400).items(),
                    *points(r.failed_ratio(window), PLACE, [0.0 if never else 0.99] * fired + [ratio] * 300).items(),
                )},
                **points(r.failed_weight(of.long), PLACE, [99] * fired + [0.5] * 300),
                **points(r.unanswered(of.long), PLACE, [many * edge if never else None] * fired + [many * edge] * 300),
                **points(r.unanswered(of.short), PLACE, [few * edge if never else None] * fired + [few * edge] * 300),
            },
            checks=(
                (silent if never else fires)(burn, f"{(fired - 1) * unit}m", long=of.long),
                fires(burn, ends, long=of.long) if goes_on else silent(burn, ends, long=of.long),
            ),
        )  # fmt: skip
    if limit < 0.9:
        fired = of.wait // 4 + 5
        yield Scenario(
            name=f"a budget that burnt over {of.long} and has had no verdict for a day",
            under=(burn,),
            step="4m",
            given={
                **{key: value.replace("x210", "x500") for key, value in given.items()},
                **{key: value for window in (of.long, of.short) for key, value in (
                    *constant(r.weight(window), PLACE, 0, 500).items(),
                    *constant(r.failed_weight(window), PLACE, 0, 500).items(),
                    *points(r.failed_ratio(window), PLACE, [0.99] * fired + [None] * 400).items(),
                    *points(r.unanswered(window), PLACE, [None] * fired + [100] * 400).items(),
                )},
            },
            checks=(
                fires(burn, f"{4 * fired + 1_380}m", long=of.long),
                silent(burn, f"{4 * fired + 1_500}m", long=of.long),
            ),
        )  # fmt: skip


def _unknown() -> Iterator[Scenario]:
    alert = "SidejudgePassRateUnknown"
    for last, is_raised in ((2, True), (1, True), (0.9, False), (0, False)):
        reported = fires(alert, "15m", severity="info") if is_raised else silent(alert, "15m")
        yield Scenario(
            name=f"silence after status {last}",
            under=(alert,),
            given=constant(r.HELD, PLACE, last),
            checks=(silent(alert, "9m"), reported),
        )
    for last in (0.0, 2.0):
        given = {
            **points(r.KNOWN, PLACE, [last] * 10 + [None] * 200),
            **points(r.STATUS, PLACE, [last] * 10 + [-1] * 200),
        }
        yield Scenario(
            name=f"what was known last is status {last:g}",
            under=(r.HELD,),
            given=given,
            checks=(is_number(r.HELD, "9m", None), is_number(r.HELD, "25m", last)),
        )
    yield Scenario(
        name="healthy is known too",
        under=(r.HELD,),
        given={**points(r.KNOWN, PLACE, [2.0] * 5 + [None] * 60), **constant(r.STATUS, PLACE, 0)},
        checks=(is_number(r.HELD, "40m", None),),
    )
    yield Scenario(
        name="after a day it is forgotten",
        under=(r.HELD,),
        step="10m",
        given={**points(r.KNOWN, PLACE, [2.0] * 3 + [None] * 200), **points(r.STATUS, PLACE, [2.0] * 3 + [-1] * 200)},
        checks=(is_number(r.HELD, "20h", 2), is_number(r.HELD, "26h", None)),
    )
    for level, last, is_held in (
        ("critical", 2, True), ("critical", 1.9, False), ("warning", 1, True), ("warning", 0.9, False),
    ):  # fmt: skip
        alert = f"SidejudgePassRate{level.capitalize()}"
        held = fires(alert, "12h", severity=level) if is_held else silent(alert, "12h")
        yield Scenario(
            name=f"when verdicts stop after status {last}, {level} {'stays' if is_held else 'does not begin'}",
            under=(alert,),
            step="10m",
            given={
                **points(r.STATUS, PLACE, [float(last)] * 3 + [None] * 200),
                **points(r.pass_ratio("1h"), PLACE, [0.6] * 4 + [None] * 200),
                **points(r.HELD, PLACE, [None] * 3 + [float(last)] * 200),
            },
            checks=(held, silent(alert, "26h")),
        )
