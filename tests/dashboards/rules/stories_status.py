"""Status: estimates from counters, looks, and the alerts on the pass ratio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sidejudge.dashboards.rules import recordings as r
from sidejudge.scoring.statistics.interval import Z_99_ONE_SIDED
from tests.dashboards.rules.scenario import (
    PLACE,
    RUBRIC,
    THRESHOLDS,
    Check,
    Scenario,
    constant,
    fires,
    is_number,
    labelled,
    on_both_pods,
    points,
    shown,
    silent,
    target,
    upper_bound,
)


def stories() -> Iterator[Scenario]:
    yield from _estimates()
    yield from _thresholds()
    yield from _looks()
    yield from _left_open()
    yield from _undecided()
    yield from _stopped()
    yield from _status_alerts()
    yield from _story()


def _verdicts(window_steps: int, place: Mapping[str, str] = PLACE) -> dict[str, str]:
    """Drawn at uneven rates, by two processes: six verdicts a step, of which two fail."""
    steps = window_steps * 2
    return {
        **on_both_pods("sidejudge_verdict_weight_total", place, [9] * steps),
        **on_both_pods("sidejudge_verdict_failed_weight_total", place, [2.5] * steps),
        **on_both_pods("sidejudge_verdict_weight_squared_total", place, [15] * steps),
        **on_both_pods("sidejudge_verdicts_failed_total", {**place, "selection": "random"}, [0.5] * steps),
        **on_both_pods("sidejudge_verdicts_failed_total", {**place, "selection": "forced"}, [1.5] * steps),
    }


def _effects(course: Mapping[str, str]) -> dict[str, str]:
    """The design effect of processes, by pod."""
    return {labelled("sidejudge_design_effect", {**PLACE, **target(pod)}): text for pod, text in course.items()}


def _ever(weight: float) -> dict[str, str]:
    """What two processes have counted since they know the service, one of them nothing."""
    name = "sidejudge_verdict_weight_total"
    return {**constant(name, {**PLACE, **target("a")}, weight), **constant(name, {**PLACE, **target("b")}, 0)}


def _estimates() -> Iterator[Scenario]:
    # W = 540, F = 150, W² sum = 900: the ratio is 1 - 150/540, the effective size 540²/900 = 324.
    values = (
        (r.weight, 540),
        (r.failed_weight, 150),
        (r.squared_weight, 900),
        (r.clustered_weight, 900),
        (r.failures, 120),
        (r.effective, 324),
        (r.pass_ratio, 390 / 540),
        (r.lower, shown(390 / 540, 324).lower),
        (r.upper, shown(390 / 540, 324).upper),
    )
    yield Scenario(
        name="the ratio of the fleet comes from weights that are summed first",
        under=tuple(name("1h") for name, _ in values),
        given=_verdicts(60),
        checks=tuple(
            check
            for name, value in values
            for check in (is_number(name("1h"), "2h", value), Check(at="2h", expr=f"count({name('1h')})", value=1))
        ),
    )
    for ratio, size in ((0.2, 1.2), (0.14, 2), (0.16, 2), (0.8, 1.2), (0.86, 2), (0.84, 2), (1, 30), (0, 30)):
        yield Scenario(
            name=f"the bounds of a pass ratio of {ratio} at {size} samples",
            under=(r.lower("1h"), r.upper("1h")),
            given={**constant(r.pass_ratio("1h"), PLACE, ratio), **constant(r.effective("1h"), PLACE, size)},
            checks=(
                is_number(r.lower("1h"), "5m", shown(ratio, size).lower),
                is_number(r.upper("1h"), "5m", shown(ratio, size).upper),
            ),
        )
    # Of Σw² = 900 pod a has 675, pod b 225.
    for name, effects, clustered in (
        ("each process's verdicts count as its sessions have it", {"a": "2x120", "b": "3x120"}, 675 * 2 + 225 * 3),
        ("a process that exports no design effect has none", {"a": "2x120"}, 675 * 2 + 225),
        ("the last design effect of a process that is gone holds", {"a": "4x80 2x10 stale", "b": "3x120"}, 2025),
    ):
        yield Scenario(
            name=name,
            under=(r.effective("1h"),),
            given={**_verdicts(60), **_effects(effects)},
            checks=(
                is_number(r.clustered_weight("1h"), "2h", clustered),
                is_number(r.effective("1h"), "2h", 540**2 / clustered),
                Check(at="2h", expr=f"count({r.effective('1h')})", value=1),
            ),
        )
    yield Scenario(
        name="without a verdict there is a sample size of 0 and no ratio",
        under=(r.effective("1h"), r.pass_ratio("1h")),
        given={
            **constant(r.weight("1h"), PLACE, 0),
            **constant(r.clustered_weight("1h"), PLACE, 0),
            **constant(r.failed_weight("1h"), PLACE, 0),
            **_ever(7),
        },
        checks=(is_number(r.effective("1h"), "1h", 0), is_number(r.pass_ratio("1h"), "1h", None)),
    )
    yield Scenario(
        name="of a rubric that never judged a service nothing is said",
        under=(r.effective("1h"), r.effective("1d"), r.STATUS),
        given={
            **constant(r.weight("1h"), PLACE, 0), **constant(r.clustered_weight("1h"), PLACE, 0),
            **constant(r.weight("1d"), PLACE, 0), **constant(r.clustered_weight("1d"), PLACE, 0), **_ever(0),
        },
        checks=tuple(is_number(name, "1h", None) for name in (r.effective("1h"), r.effective("1d"), r.STATUS)),
    )  # fmt: skip
    for window, at, step, scale in (
        ("5m", "20m", "1m", 5),
        ("30m", "2h", "2m", 15),
        ("6h", "24h", "10m", 36),
        ("1d", "4d", "1h", 24),
        ("3d", "9d", "2h", 36),
    ):
        names: list[tuple[str, float]] = [
            (r.weight(window), 9 * scale),
            (r.failed_weight(window), 2.5 * scale),
            (r.failures(window), 2 * scale),
        ]
        if window != "1d":
            names.append((r.failed_ratio(window), 150 / 540))
        yield Scenario(
            name=f"sums over {window}",
            under=tuple(name for name, _ in names),
            step=step,
            given=_verdicts(scale * 2),
            checks=tuple(
                check
                for name, value in names
                for check in (is_number(name, at, value), Check(at=at, expr=f"count({name})", value=1))
            ),
        )
    yield Scenario(
        name="the share of failures of the hour",
        under=(r.failed_ratio("1h"),),
        given={**constant(r.failed_weight("1h"), PLACE, 150), **constant(r.weight("1h"), PLACE, 540)},
        checks=(is_number(r.failed_ratio("1h"), "1h", 150 / 540),),
    )
    clustered = 360 * 0.75 * 2 + 360 * 0.25  # the design effect of one pod is two days old
    size = 216**2 / clustered
    yield Scenario(
        name="the day's bounds",
        under=(
            r.squared_weight("1d"),
            r.clustered_weight("1d"),
            r.effective("1d"),
            r.pass_ratio("1d"),
            r.lower("1d"),
            r.upper("1d"),
            r.upper("1d", 99),
        ),
        step="1h",
        given={**_verdicts(48), **_effects({"a": "5x70 2x26 stale", "b": "3x70 stale"})},
        checks=(
            is_number(r.squared_weight("1d"), "4d", 360),
            is_number(r.clustered_weight("1d"), "4d", clustered),
            is_number(r.effective("1d"), "4d", size),
            is_number(r.pass_ratio("1d"), "4d", 390 / 540),
            is_number(r.lower("1d"), "4d", shown(390 / 540, size).lower),
            is_number(r.upper("1d"), "4d", shown(390 / 540, size).upper),
            is_number(r.upper("1d", 99), "4d", upper_bound(390 / 540, size, Z_99_ONE_SIDED)),
            Check(at="4d", expr=f"count({r.squared_weight('1d')})", value=1),
            Check(at="4d", expr=f"count({r.clustered_weight('1d')})", value=1),
        ),
    )
    yield Scenario(
        name="a day without a verdict",
        under=(r.effective("1d"), r.pass_ratio("1d")),
        given={
            **constant(r.weight("1d"), PLACE, 0),
            **constant(r.clustered_weight("1d"), PLACE, 0),
            **constant(r.failed_weight("1d"), PLACE, 0),
            **_ever(7),
        },
        checks=(is_number(r.effective("1d"), "1h", 0), is_number(r.pass_ratio("1d"), "1h", None)),
    )


def _thresholds() -> Iterator[Scenario]:
    family = "sidejudge_pass_ratio_threshold"
    yield Scenario(
        name="of two processes that disagree during a rollout the stricter threshold holds",
        under=(r.THRESHOLD,),
        given={
            **constant(family, {**RUBRIC, "level": "warning", **target("a")}, 0.85),
            **constant(family, {**RUBRIC, "level": "warning", **target("b")}, 0.90),
            **constant(family, {**RUBRIC, "level": "critical", **target("a")}, 0.70),
        },
        checks=(
            is_number(r.THRESHOLD, "5m", 0.9, level="warning"),
            is_number(r.THRESHOLD, "5m", 0.7, level="critical"),
            Check(at="5m", expr=f"count({r.THRESHOLD})", value=2),
        ),
    )


def _looks() -> Iterator[Scenario]:
    def look(upper: float, failures: float, samples: float, warning: float | None, critical: float | None) -> Scenario:
        return Scenario(
            name=f"a look at an upper bound of {upper} with {failures} failures of {samples}",
            under=(r.BELOW,),
            given={
                **THRESHOLDS,
                **constant(r.upper("1h"), PLACE, upper),
                **constant(r.failures("1h"), PLACE, failures),
                **constant(r.effective("1h"), PLACE, samples),
            },
            checks=(
                is_number(r.BELOW, "5m", warning, level="warning"),
                is_number(r.BELOW, "5m", critical, level="critical"),
            ),
        )

    yield look(0.86, 40, 100, 0, 0)
    yield look(0.84, 40, 100, 1, 0)
    yield look(0.71, 40, 100, 1, 0)
    yield look(0.69, 40, 100, 1, 1)
    yield look(0.60, 3, 30, 1, 1)
    yield look(0.60, 2.9, 30, None, None)  # neither bad nor good
    yield look(0.80, 2.9, 30, None, 0)
    yield look(0.85, 2.9, 30, 0, 0)
    yield look(0.70, 2.9, 30, None, 0)
    yield look(0.60, 3, 29, None, None)

    def below(level: str, values: str) -> dict[str, str]:
        return points(r.BELOW, {**PLACE, "level": level}, [None if each == "." else float(each) for each in values])

    yield Scenario(
        name="the last twelve looks are counted, and the thirteenth is not",
        under=(r.LOOKS_BELOW,),
        given={**below("warning", "1" * 30), **below("critical", "1110101111110")},
        checks=(
            is_number(r.LOOKS_BELOW, "29m", 12, level="warning"),
            is_number(r.LOOKS_BELOW, "12m", 9, level="critical"),
        ),
    )

    def status(warned: str, critical: str, code: float, samples: float = 100, lower: float = 0.5) -> Scenario:
        at = f"{len(warned) - 1}m"
        return Scenario(
            name=f"looks {warned} and {critical} with {samples} samples are {r.STATUS_CODES[int(code)]}",
            under=(r.STATUS, r.LOOKS_BELOW, r.KNOWN),
            given={
                **THRESHOLDS,
                **points(r.lower("1h"), PLACE, [0.5] * (len(warned) - 1) + [lower]),
                **below("warning", warned),
                **below("critical", critical),
                **constant(r.effective("1h"), PLACE, samples),
            },
            checks=(is_number(r.STATUS, at, code), is_number(r.KNOWN, at, code if code >= 0 else None)),
        )

    yield status("0" * 13, "0" * 13, 0)
    yield status("1011111110111", "0" * 13, 1)
    yield status("1" * 13, "0011111111110", 2)
    yield status("1" * 13, "0001111111110", 1)
    yield status("1001111111110", "0" * 13, -1)  # nine of the last twelve: neither bad nor healthy
    yield status("0000000000001", "0" * 13, -1)  # the latest look rules healthy out
    yield status("0000000000110", "0" * 13, 0)
    yield status("0000000001110", "0" * 13, -1)  # nine good ones are too few
    yield status("1111111111...0", "0000000000...0", -1)  # an alarm does not begin with a look that is good
    yield status("1111111111...0", "1111111111...0", -1)
    yield status("1" * 13, "1" * 12 + "0", 2, lower=0.7)  # one that has begun lasts
    yield status("1" * 13, "1" * 12 + "0", 1, lower=0.71)  # unless the interval lies above its threshold
    yield status("1" * 12 + "0", "0" * 13, 1, lower=0.85)
    yield status("1" * 12 + "0", "0" * 13, -1, lower=0.86)
    yield status("0", "0", 0)
    yield status("1", "1", -1)  # one bad look proves neither
    yield status("1" * 10, "0" * 10, 1)
    yield status("0011111111", "0" * 10, -1)  # eight of ten bad looks prove neither
    yield status("0000010000", "0" * 10, -1)
    yield status("000000......010000", "000000......000000", -1)
    yield status("0000000000100", "...........00", 0)
    for code, letters in ((2, ("1", "1")), (1, ("1", "0")), (0, ("0", "0"))):
        yield status(letters[0] * 13, letters[1] * 13, -1, samples=29)
        yield status(letters[0] * 13, letters[1] * 13, code, samples=30)


def _left_open() -> Iterator[Scenario]:
    def left_open(
        failed: float, waiting: float, upper: float, warning: float | None, critical: float | None
    ) -> Scenario:
        """So many of 80 traces fail, and others wait at two processes."""
        name = "sidejudge_unanswered_traces"
        return Scenario(
            name=f"a look at {failed} failures of 80, at most {upper} pass, while {waiting} traces have no answer",
            under=(r.BELOW,),
            given={
                **THRESHOLDS, **constant(r.upper("1h"), PLACE, upper), **constant(r.failures("1h"), PLACE, 16),
                **constant(r.effective("1h"), PLACE, 80), **constant(r.weight("1h"), PLACE, 80),
                **constant(r.failed_weight("1h"), PLACE, failed),
                **constant(name, {**PLACE, **target("a")}, waiting / 4),
                **constant(name, {**PLACE, **target("b")}, 3 * waiting / 4),
            },
            checks=(
                is_number(r.BELOW, "5m", warning, level="warning"),
                is_number(r.BELOW, "5m", critical, level="critical"),
            ),
        )  # fmt: skip

    yield left_open(16, 8, 0.84, 1, 0)  # 0.73 to 0.82: all of it between the thresholds
    yield left_open(16, 11.4, 0.84, 1, 0)  # from 0.7002
    yield left_open(16, 11.5, 0.84, 1, None)  # from 0.6995
    yield left_open(16, 26.6, 0.84, 1, None)  # up to 0.8499
    yield left_open(16, 26.7, 0.84, None, None)  # up to 0.8501
    yield left_open(4, 9.4, 0.97, 0, 0)  # from 0.8501
    yield left_open(4, 9.5, 0.97, None, 0)  # from 0.8492
    yield left_open(40, 53.2, 0.6, 1, 1)  # up to 0.6997
    yield left_open(40, 53.4, 0.6, 1, None)  # up to 0.7001
    yield left_open(40, 80, 0.6, 1, None)  # up to 0.75
    yield left_open(30, 120, 0.8, None, None)  # up to 0.85 exactly
    yield left_open(16, 1000, 0.9, None, None)
    yield from _left_open_until()


def _left_open_until() -> Iterator[Scenario]:
    """What had no answer for ten minutes, and what from then on, is known five minutes longer: a restart takes it."""
    for failed, upper, unanswered, like_passed, like_failed, at_13, at_17 in (
        (16, 0.84, (40, 0), (0, 0), (0, 0), (None, None), (1, 0)),
        (8, 0.95, (40, 0), (0, 0), (0, 0), (None, None), (0, 0)),
        (32, 0.65, (40, 0), (0, 0), (0, 0), (1, None), (1, 1)),
        (16, 0.84, (0, 0), (40, 0), (0, 0), (None, 0), (1, 0)),
        (8, 0.95, (0, 0), (0, 0), (40, 0), (None, None), (0, 0)),
        (32, 0.65, (0, 0), (40, 0), (0, 0), (1, None), (1, 1)),
        (8, 0.95, (0, 0), (40, 0), (0, 40), (None, 0), (None, None)),
        (16, 0.84, (0, 0), (0, 40), (40, 0), (1, None), (None, 0)),
        (32, 0.65, (0, 0), (0, 40), (40, 0), (1, 1), (1, None)),
        *(
            (failed, upper, (0, 0), (40, 40), (like, like), known, known)
            for failed, upper, like, known in (
                (8, 0.95, 12, (None, 0)),
                (8, 0.95, 11, (0, 0)),
                (16, 0.84, 2, (None, 0)),
                (16, 0.84, 3, (1, 0)),
                (32, 0.65, 5, (1, None)),
                (32, 0.65, 6, (1, 1)),
            )
        ),
    ):
        waits: dict[str, str] = {}
        for name, labels, (before, after) in (
            ("sidejudge_unanswered_traces", {}, unanswered),
            ("sidejudge_behind_traces", {"like": "passed"}, like_passed),
            ("sidejudge_behind_traces", {"like": "failed"}, like_failed),
        ):  # fmt: skip
            for pod, share in (("a", 0.25), ("b", 0.75)):
                course = [share * before] * 11 + [share * after] * 10
                waits |= points(name, {**PLACE, **labels, **target(pod)}, course)
        yield Scenario(
            name=f"a look at {failed} failures of 80; {unanswered}, {like_passed} and {like_failed} have no answer",
            under=(r.BELOW,),
            given={
                **THRESHOLDS, **constant(r.upper("1h"), PLACE, upper), **constant(r.failures("1h"), PLACE, 16),
                **constant(r.effective("1h"), PLACE, 80), **constant(r.weight("1h"), PLACE, 80),
                **constant(r.failed_weight("1h"), PLACE, failed), **waits,
            },
            checks=tuple(
                is_number(r.BELOW, at, value, level=level)
                for at, values in (("13m", at_13), ("17m", at_17))
                for level, value in zip(("warning", "critical"), values, strict=True)
            ),
        )  # fmt: skip


def _undecided() -> Iterator[Scenario]:
    name, undecided = "sidejudge_status", {**PLACE, "status": "insufficient_data"}
    for a, b, code in ((1, 1, -1), (1, 0, -1), (0, 0, None)):
        yield Scenario(
            name=f"no verdict ever passed or failed, and processes say {a} and {b} of insufficient data",
            under=(r.STATUS,),
            given={
                **constant(name, {**undecided, **target("a")}, a),
                **constant(name, {**undecided, **target("b")}, b),
            },
            checks=(
                is_number(r.STATUS, "1h", code),
                Check(at="1h", expr=f'count({r.STATUS}{{status=""}})', value=code and 1),
            ),
        )


def _stopped() -> Iterator[Scenario]:
    name = "sidejudge_status"
    for said, code in ((("no_data", "no_data"), -2), (("no_data", "healthy"), None), (("healthy", "healthy"), None)):
        yield Scenario(
            name=f"two processes say {said}",
            under=(r.STATUS,),
            given={
                series: course
                for process, status in zip("ab", said, strict=True)
                for series, course in constant(name, {**PLACE, "status": status, **target(process)}, 1).items()
            },
            checks=(
                is_number(r.STATUS, "1h", code),
                Check(at="1h", expr=f'count({r.STATUS}{{status=""}})', value=code and 1),
            ),
        )
    last = "sidejudge_last_verdict_timestamp_seconds"
    alert = "SidejudgeTrafficStopped"
    for status in (-2, -1, 0):
        lasts = fires(alert, "5m", severity="info"), fires(alert, "24m")
        yield Scenario(
            name=f"status {status}, the last verdict of two processes is a week ago in 20 minutes and earlier",
            under=(alert,),
            given={
                **constant(r.STATUS, PLACE, status),
                **constant(last, {**PLACE, **target("a")}, 20 * 60 - 604_800),
                **constant(last, {**PLACE, **target("b")}, -900_000),
            },
            # One process may not have seen the service for long while the other is away.
            checks=(silent(alert, "4m"), *(lasts if status == -2 else ()), silent(alert, "26m")),
        )


def _status_alerts() -> Iterator[Scenario]:
    for level in ("critical", "warning"):
        alert = f"SidejudgePassRate{level.capitalize()}"
        lasts = 39 if level == "warning" else 49  # a page outlasts the warning that it explains
        code = r.LEVELS.index(level) + 1
        yield Scenario(
            name=f"a status raises {level}, and it lasts for {lasts - 9} minutes",
            under=(alert,),
            given={
                **points(r.STATUS, PLACE, [code - 0.1] * 5 + [code] * 5 + [code - 0.1] * 60),
                **constant(r.pass_ratio("1h"), PLACE, 0.6),
            },
            checks=(
                silent(alert, "4m"),
                fires(alert, "5m", severity=level),
                fires(alert, f"{lasts - 1}m"),
                silent(alert, f"{lasts + 1}m"),
            ),
        )


def _story() -> Iterator[Scenario]:
    """Two processes, ten verdicts a minute: well, then worse, then bad, then well again, then nothing."""
    good, worse, bad = [(10, 0.5)] * 90, [(10, 2.5)] * 90, [(10, 4.5)] * 90
    reported = good + worse + bad + good + good + [(0, 0.0)] * 90
    verdicts, failed = [n for n, _ in reported], [k for _, k in reported]
    warning, critical = "SidejudgePassRateWarning", "SidejudgePassRateCritical"
    thresholds = {
        labelled("sidejudge_pass_ratio_threshold", {**RUBRIC, "level": level, **target(pod)}): f"{value}x600"
        for level, value in (("warning", 0.85), ("critical", 0.7))
        for pod in ("a", "b")
    }
    yield Scenario(
        name="a service goes healthy, warning, critical, healthy, and is not healthy for being silent",
        under=(warning, critical, r.STATUS, r.KNOWN, "SidejudgePassRateUnknown"),
        given={
            **thresholds,
            **on_both_pods("sidejudge_verdict_weight_total", PLACE, verdicts),
            **on_both_pods("sidejudge_verdict_weight_squared_total", PLACE, verdicts),
            **on_both_pods("sidejudge_verdict_failed_weight_total", PLACE, failed),
            **on_both_pods("sidejudge_verdicts_failed_total", {**PLACE, "selection": "random"}, failed),
        },
        checks=(
            silent(warning, "90m"),
            is_number(r.STATUS, "90m", 0),
            fires(warning, "175m"),
            silent(critical, "175m"),
            is_number(r.STATUS, "175m", 1),
            fires(warning, "265m"),
            fires(critical, "265m"),
            is_number(r.STATUS, "265m", 2),
            silent(warning, "445m"),
            silent(critical, "445m"),
            is_number(r.STATUS, "445m", 0),
            is_number(r.STATUS, "535m", -1),
            silent("SidejudgePassRateUnknown", "535m"),
            silent(critical, "535m"),
        ),
    )
