"""Writes monitor/STATUS.md: how often each mode alarms falsely, and how long it takes to notice. Some minutes.

``python tests/simulation/tables.py``
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import numpy as np  # noqa: E402  # the path is set first
from simulated import (  # noqa: E402  # the path is set first
    BOUND,
    HOUR_NS,
    MODES,
    RUBRIC,
    Declaration,
    described,
    early_warnings,
    entries,
    service,
    statuses,
)

from scoring.statistics.cusum import Cusum, design  # noqa: E402  # the path is set first
from scoring.statistics.interval import Z_95_TWO_SIDED, wilson  # noqa: E402  # the path is set first
from scoring.statistics.sequence import ConfidenceSequence  # noqa: E402  # the path is set first
from scoring.status.status import Status  # noqa: E402  # the path is set first
from tests.run_length import average_run_length  # noqa: E402  # the path is set first

PAGE = HERE.parents[1] / "monitor" / "STATUS.md"
RATES = (30, 120, 1200)
HEALTHY = (0.95, 0.90, 0.87)
DEGRADED = (0.80, 0.75, 0.60, 0.40)
MONTH_H = 720.0
BEFORE_H, AFTER_H = 6.0, 30.0
RUNS = 20

HEAD = """# How good the status is

Written by `python tests/simulation/tables.py`; quick versions of the same run in the suite (`tests/simulation`).
Simulated services, Poisson traffic, verdicts that are independent of each other; the code that says the status is
the monitor's own.

Defaults in force: {described}.

- *Plain average*: an average over the same window (mode `point` from the first verdict on), which is what an
  alert on an average score does.
- *bound*: the default. *sequence*: a confidence sequence. *Early warning*: the change detector (CUSUM), in every mode.
- A *false alarm* is a beginning of `warning` or `critical` (or of an early warning) of a service whose pass rate is
  constant and above 0.85. A service that alternates once an hour counts as many times.
"""

READING = """
## How to read it

- A plain average is useless below some hundred verdicts an hour: it cries many times a day for a service at 0.90, and
  its delay is short only because it always cries.
- `bound` is not built for a promise over time: near the threshold (0.87) and with little traffic it will be wrong
  some day. At 30 verdicts an hour many windows hold fewer than `min_samples`: lengthen `alerts.window`, or raise the
  sampling rate.
- `sequence` keeps its promise however often one looks, needs no minimum, and waits for no window: with much traffic
  it is the fastest and with little the slowest. It assumes that the pass rate, given the past, does not dip below
  the threshold even for a while; a dip is found, as it should be. After a true alarm it starts from the evidence of
  that moment. It does not need `alerts.hysteresis`, whose ten looks are ten of its minutes.
- The early warning costs one false alarm a month at a pass rate of exactly *good* (0.90), far fewer above it, and tells
  when the change began. 0.87 is no longer good, and so it says. It is of severity `info`.
- Intervals and sequences are as good as inclusion probabilities are true. Turns of one session are not independent;
  where sessions matter, judge per session or sample by session.
"""


def false_alarms(declared: Declaration, ratio: float, per_hour: float, months: float) -> tuple[float, float]:
    """Alarms a month, and the share of looks with insufficient data."""
    rng = np.random.default_rng([1, int(ratio * 100), int(per_hour)])
    hours = MONTH_H * months
    verdicts = service(rng, per_hour=per_hour, stretches=[(hours, ratio)])
    reported = list(statuses(declared, verdicts, hours=hours))
    unsure = sum(status is Status.INSUFFICIENT_DATA for _, status in reported) / len(reported)
    return len(entries(iter(reported))) / months, unsure


def delays(declared: Declaration, ratio: float, per_hour: float) -> dict[str, list[float]]:
    """Minutes from the change until warning (or worse) and until critical; infinite where it was not found in time."""
    found: dict[str, list[float]] = {"warning": [], "critical": []}
    for run in range(RUNS):
        rng = np.random.default_rng([2, int(ratio * 100), int(per_hour), run])
        verdicts = service(rng, per_hour=per_hour, stretches=[(BEFORE_H, 0.95), (AFTER_H, ratio)])
        reported = list(statuses(declared, verdicts, hours=BEFORE_H + AFTER_H))
        for name, levels in (("warning", (Status.WARNING, Status.CRITICAL)), ("critical", (Status.CRITICAL,))):
            after = [at for at in entries(iter(reported), levels) if at > BEFORE_H * HOUR_NS]
            found[name].append((after[0] / HOUR_NS - BEFORE_H) * 60 if after else float("inf"))
    return found


def warned(ratio: float, per_hour: float) -> tuple[list[float], list[float]]:
    """Minutes to the early warning, and by how many minutes its date of the change is off."""
    waits, errors = [], []
    for run in range(RUNS):
        rng = np.random.default_rng([2, int(ratio * 100), int(per_hour), run])
        verdicts = service(rng, per_hour=per_hour, stretches=[(BEFORE_H, 0.95), (AFTER_H, ratio)])
        after = [
            (at, since) for at, since in early_warnings(BOUND, verdicts, per_hour=per_hour) if at > BEFORE_H * HOUR_NS
        ]
        waits.append((after[0][0] / HOUR_NS - BEFORE_H) * 60 if after else float("inf"))
        if after and after[0][1] is not None:
            errors.append(abs(after[0][1] / HOUR_NS - BEFORE_H) * 60)
    return waits, errors


def minutes(values: Sequence[float]) -> str:
    """Median and 90th percentile of waits."""
    ordered = sorted(values)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.9)]
    return " / ".join("–" if value == float("inf") else f"{value:.0f}" for value in (middle, late))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def false_alarm_table() -> str:
    rows = []
    for per_hour in RATES:
        months = 2.0 if per_hour < 1000 else 1.0
        for mode, declared in MODES.items():
            reported = [false_alarms(declared, ratio, per_hour, months) for ratio in HEALTHY]
            rows.append((str(per_hour), mode, *(f"{alarms:.1f}" for alarms, _ in reported), f"{reported[0][1]:.0%}"))
            progress(rows[-1])
        early = []
        for ratio in HEALTHY:
            rng = np.random.default_rng([1, int(ratio * 100), per_hour])
            verdicts = service(rng, per_hour=per_hour, stretches=[(MONTH_H * months, ratio)])
            early.append(len(early_warnings(BOUND, verdicts, per_hour=per_hour)) / months)
        rows.append((str(per_hour), "early warning", *(f"{alarms:.1f}" for alarms in early), ""))
        progress(rows[-1])
    head = ("verdicts an hour", "mode", *(f"at {ratio:.2f}" for ratio in HEALTHY), "insufficient data, of the time")
    return "\n## False alarms a month\n\n" + table(head, rows)


def delay_table() -> str:
    rows = []
    for per_hour in RATES:
        for mode, declared in MODES.items():
            found = [delays(declared, ratio, per_hour) for ratio in DEGRADED]
            critical = minutes(found[2]["critical"]), minutes(found[3]["critical"])
            rows.append((str(per_hour), mode, *(minutes(each["warning"]) for each in found), *critical))
            progress(rows[-1])
        early = [warned(ratio, per_hour) for ratio in DEGRADED]
        off = sorted(error for _, errors in early[1:] for error in errors)
        date = f"date off by {off[len(off) // 2]:.0f} min"
        rows.append((str(per_hour), "early warning", *(minutes(waits) for waits, _ in early), date, ""))
        progress(rows[-1])
    head = (
        "verdicts an hour", "mode", *(f"to {ratio:.2f}" for ratio in DEGRADED), "critical, to 0.60",
        "critical, to 0.40",
    )  # fmt: skip
    note = (
        f"From 0.95 down, in minutes: median / 90th percentile of {RUNS} runs until `warning` or worse, and until "
        f"`critical`; – is not within {AFTER_H:.0f} hours.\n\n"
    )
    return "\n## Minutes until a drop is noticed\n\n" + note + table(head, rows)


def promise_table() -> str:
    rows = []
    for error, period, runs in ((0.05, 5_000, 200), (0.20, 5_000, 200)):
        for forced in (False, True):
            rng, wrong = np.random.default_rng([3, forced]), 0
            for _ in range(runs):
                sequence = ConfidenceSequence((0.85,), error=error, period_ns=period)
                for at in range(period):
                    passed = rng.random() < 0.85
                    sure = forced and not passed and rng.random() < 0.5
                    if sure or not forced or rng.random() < 0.05:
                        sequence.add(passed=bool(passed), weight=1.0 if sure else 20.0, at_ns=at)
                        if sequence.below(0.85):
                            wrong += 1
                            break
            kind = "half of the failures forced, the rest at 5 %" if forced else "one rate"
            between = wilson(wrong, runs, Z_95_TWO_SIDED)
            chance = f"{between.lower:.1%} to {between.upper:.1%}" if between else ""
            rows.append((kind, f"{error:.0%}", f"{wrong / runs:.1%}", chance, str(runs)))
            progress(rows[-1])
    text = (
        "A service that passes at exactly the threshold, 5,000 traces in one period, looked at after every verdict: "
        "how often the sequence is ever wrong.\n\n"
    )
    return (
        "\n## The promise of a sequence\n\n"
        + text
        + table(("sampling", "promised at most", "found", "95 % interval", "runs"), rows)
    )


def run_length_table() -> str:
    rows = []
    good, bad = BOUND.good_and_bad(RUBRIC)
    for wanted in (1_000.0, 32_768.0, 1_048_576.0):
        chart = design(good, bad, wanted)
        rng, runs = np.random.default_rng(4), []
        for _ in range(200 if wanted <= 1_000 else 0):
            cusum, n = Cusum(), 0
            while not cusum.alarmed:
                n += 1
                cusum.add(chart, passed=bool(rng.random() < good), weight=1.0, at_ns=n)
            runs.append(n)
        at = [
            average_run_length(p, jump=chart.jump, limit_steps=chart.limit_steps) for p in (0.95, good, 0.8, 0.7, 0.6)
        ]
        simulated = f"{np.mean(runs):,.0f} ± {np.std(runs) / np.sqrt(len(runs)):,.0f}" if runs else ""
        rows.append(
            (f"{wanted:,.0f}", f"{chart.limit:.2f} ({chart.limit_any:.2f})", *(f"{n:,.0f}" for n in at), simulated)
        )
    head = (
        "promised at 0.90",
        "limit (any weights), nats",
        "0.95",
        "0.90",
        "0.80",
        "0.70",
        "0.60",
        "simulated at 0.90",
    )
    text = "Verdicts until the early warning, on average, by the Markov chain.\n\n"
    return "\n## Run lengths of the early warning\n\n" + text + table(head, rows)


def progress(row: Sequence[str]) -> None:
    print(" | ".join(row), flush=True)  # noqa: T201 - it takes minutes


if __name__ == "__main__":
    parts = [HEAD.format(described=described(BOUND)), false_alarm_table(), delay_table(), promise_table()]
    PAGE.write_text("".join([*parts, run_length_table(), READING]), encoding="utf-8")
