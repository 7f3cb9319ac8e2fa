"""Writes docs/reference/status.md: how often each mode alarms falsely, and how soon it notices: ``make status``.

Thirty simulated months a cell, a hundred for the goals; half an hour. ``months.py`` simulates many months at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import goals  # noqa: E402  # the path is set first
import numpy as np  # noqa: E402  # the path is set first
from months import (  # noqa: E402  # the path is set first
    HOUR_NS,
    Declaration,
    Months,
    Traffic,
    adaptive_force,
    beginnings,
    bound_levels,
    cusum,
    drawn,
    looks,
    settled,
)
from simulated import ADAPTIVE, BOUND, PLAIN, RUBRIC, described  # noqa: E402  # the path is set first

from sidejudge.scoring.statistics.cusum import Cusum, average_run_length, design  # noqa: E402  # the path is set first
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED, wilson, wilson_pair  # noqa: E402  # the path is set first
from sidejudge.scoring.statistics.sequence import ConfidenceSequence  # noqa: E402  # the path is set first
from sidejudge.scoring.status.status import Thresholds  # noqa: E402  # the path is set first

PAGE = HERE.parents[1] / "docs" / "reference" / "status.md"
MODES = {"plain average": PLAIN, "adaptive": ADAPTIVE, "bound": BOUND}
RATES = (20, 50, 120)
HEALTHY = (0.95, 0.90, 0.87)
DEGRADED = (0.80, 0.75, 0.60)
MONTHS, RUNS, MONTH_H = 30, 100, 720.0
_CELL_MONTHS = 20
BEFORE_H, AFTER_H = 24.0, 120.0
KINDS = {
    "independent": Traffic(per_hour=50),
    "sessions of 5 that agree": Traffic(per_hour=50, size=5),
    "ten times as much at noon as at night": Traffic(per_hour=50, daily=True),
    "both": Traffic(per_hour=50, size=5, daily=True),
    "a third of the failures never judged": Traffic(per_hour=50, missing=1 / 3),
    "half of the failures forced, the rest at 5 %": Traffic(per_hour=50, forced=True),
    "failures of five at a time, no session named": Traffic(per_hour=50, size=5, named=False),
    "thin: 5 an hour": Traffic(per_hour=5),
}

HEAD = """# How good the status is

Written by `make status`; the suite holds quick versions of the same (`tests/simulation`). {months} simulated months a
cell, Poisson traffic, one service under one rubric; false alarms with the 95 % interval of their number.

Defaults in force: {described}; mode adaptive with {budget:g} false alarms a month.

- *Plain average*: an average over the same window (mode `point` from the first verdict on), which is what an
  alert on an average score does.
- *adaptive*: the default. *bound*: a confidence bound over the window. *Early warning*: the change detector
  (CUSUM) of every mode but `adaptive`, which has it built in.
- A *false alarm* is a beginning of `warning` or `critical` (or of an early warning) of a service whose pass rate is
  constant and above 0.85. A service that alternates once an hour counts as many times.
"""

READING = """
## How to read it

- A plain average is useless below some hundred verdicts an hour: it cries many times a day for a service at 0.90, and
  its delay is short only because it always cries.
- `adaptive` keeps within its budget at any constant pass rate above the threshold and any traffic, also where sessions
  fail together, named or not: it measures a fall from what is usual at the service, and tests the level beside it.
  Where sessions agree there is less to go by, and a drop takes longer: 50 verdicts an hour in sessions of 5 are 10 an
  hour. A service that truly fell, and is healthy still, may alarm until that is usual.
- No status says what its own interval rules out, so near a threshold a service is *insufficient data* (undecided) for
  minutes at a time, some percent of all looks. Alerts do not change with it.
- What bounds the delay of a decay is the noise of the present level, not the budget: with three or ten times the budget
  of its detector it is the same. At 0.0007 an hour, the noise of 500 verdicts is a day.
- The rows of `bound` are of its one-sided bound of 95 %. Since it goes by the two-sided interval that is shown, it
  alarms later and less often than they say.
- `bound` is not built for a promise over time, and knows no answer while the window holds fewer than `min_samples`. Its
  figures here leave the design effect out, as if no session were named (`alerts.cluster: none`).
- Intervals and detectors are as good as inclusion probabilities are true. What is never judged is missing from every
  figure: where a judge fails at what fails, a pass rate is too high.
"""


def levels(declared: Declaration, months: Months, times_h: np.ndarray) -> Iterator[np.ndarray]:
    """The status in force at each look, month by month."""
    if declared.policy.mode == "adaptive":
        yield from adaptive_force(declared, months, times_h).T
    else:
        yield from (settled(declared, level) for level in bound_levels(declared, months, times_h))


def batches(traffic: Traffic, seed: int, count: int, **more: float) -> Iterator[Months]:
    """Months in batches that fit into memory."""
    size = 10 if traffic.forced else 50
    for number in range(0, count, size):
        yield drawn(np.random.default_rng([seed, number]), traffic, months=min(size, count - number), **more)


def false_alarms(declared: Declaration, traffic: Traffic, ratio: float) -> tuple[str, float]:
    """Alarms a month with their interval, and the share of looks with insufficient data."""
    count, unsure = 0, []
    for months in batches(traffic, int(ratio * 100), MONTHS, hours=MONTH_H, good=ratio):
        for force in levels(declared, months, looks(declared, months)):
            count += len(beginnings(force))
            unsure.append(float(np.mean(force == -1)))
    return a_month(count), float(np.mean(unsure))


def early(traffic: Traffic, ratio: float) -> str:
    """Early warnings a month of the modes that do not have it built in."""
    count = 0
    chart = BOUND.chart(RUBRIC, traffic.per_hour * BOUND.window_ns / HOUR_NS)
    for months in batches(traffic, int(ratio * 100), MONTHS, hours=MONTH_H, good=ratio):
        alarmed, _ = cusum(months, [chart], np.ones(months.passed.shape))
        count += int((alarmed[:, 1:] & ~alarmed[:, :-1]).sum())
    return a_month(count)


def goals_table() -> str:
    """The goals at 50 an hour, with 95 % bounds, beside other methods on the same verdicts."""
    methods = ("default", "plain threshold", "burn rates", "EWMA")
    rows: list[tuple[str, ...]] = []

    def put(goal: str, cells: dict[str, str]) -> None:
        rows.append((goal, *(cells.get(method, "") for method in methods)))
        progress(rows[-1])

    def gathered(hours: float, seed: int, ratio: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
        parts = [goals.forces(months) for months in goals.batches(hours, seed=seed, ratio=ratio)]
        return {method: np.concatenate([part[method] for part in parts], axis=1) for method in methods}

    def share(found: np.ndarray, limit_h: float) -> str:
        hits, n = goals.count_within(found, limit_h)
        between = wilson(hits, n, Z_95_TWO_SIDED)
        return f"{hits / n:.0%} ({between.lower:.0%}–{between.upper:.0%})" if between else ""

    def constant(ratio: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda at: np.full(at.shape, ratio)

    for ratio in (0.90, 0.87):
        found = gathered(MONTH_H, int(ratio * 100), constant(ratio))
        put(
            f"false warnings a month at {ratio:.2f}: 0.2 at most",
            {method: a_month(goals.begun(force), goals.MONTHS) for method, force in found.items()},
        )
    found = gathered(72.0, 82, constant(0.82))
    times_h = np.arange(1, 72 * 60 + 1) / 60
    put(
        "constant 0.82: warning within 3 days: 90 % at least",
        {method: share(goals.first_h(force, times_h, 0.0), 72.0) for method, force in found.items()},
    )
    found = gathered(MONTH_H, 84, constant(0.84))
    put(
        "constant 0.84: of the time healthy / undecided / warning",
        {
            method: " / ".join(f"{np.mean(each):.0%}" for each in (force == 0, force == -1, force >= 1))
            for method, force in found.items()
        },
    )
    found = gathered(MONTH_H, 75, constant(0.75))
    put(
        "constant 0.75: critical a month: 0.2 at most",
        {method: a_month(goals.begun(found[method], 2), goals.MONTHS) for method in methods[:2]},
    )
    found = gathered(500.0, 80, lambda at: np.clip(0.96 - 0.16 * (at - goals.DECAY_FROM_H) / 240, 0.80, 0.96))
    times_h = np.arange(1, 500 * 60 + 1) / 60
    put(
        "0.96 to 0.80 in ten days: warning, hours after 0.85 was crossed (10 / 50 / 90 %): 10 at most",
        {
            method: " / ".join(
                f"{hour - goals.CROSSED_H:.0f}"
                for hour in np.quantile(
                    goals.first_h(force, times_h, goals.DECAY_FROM_H), (0.1, 0.5, 0.9), method="lower"
                )
            )
            for method, force in found.items()
        },
    )
    found = gathered(72.0, 96, lambda at: np.where(at < BEFORE_H, 0.96, 0.75))
    times_h = np.arange(1, 72 * 60 + 1) / 60
    put(
        "0.96 to 0.75: minutes until a warning (50 / 90 %)",
        {
            method: " / ".join(
                f"{(hour - BEFORE_H) * 60:.0f}"
                for hour in np.quantile(goals.first_h(force, times_h, BEFORE_H), (0.5, 0.9), method="lower")
            )
            for method, force in found.items()
        },
    )
    after = [
        goals.early_h(months, 120.0) - 120.0
        for months in goals.batches(168.0, seed=85, ratio=lambda at: np.where(at < 120.0, 0.96, 0.85))
    ]
    put(
        "0.96 to 0.85: early warning of change within 24 h: 90 % at least",
        {"default": share(np.concatenate(after), 24)},
    )
    text = (
        f"50 verdicts an hour, {goals.MONTHS} months a cell, with 95 % bounds; all methods on the same verdicts. The "
        "plain threshold compares the hour's ratio at each look; burn rates are those of the rules for Prometheus; the "
        "EWMA of the last hundred verdicts alarms below 0.81. *Undecided* is `insufficient_data`: neither an alarm nor "
        "the end of one.\n\n"
    )
    return "\n## Goals\n\n" + text + table(("goal", *methods), rows)


def cells_table() -> str:
    """Cells at the edges of what the default is for: near a threshold, thin, short, with one threshold alone."""
    rows: list[tuple[str, str]] = []

    def put(cell: str, found: str) -> None:
        rows.append((cell, found))
        progress(rows[-1])

    def month(ratio: float, per_hour: float = 50.0, declared: Declaration = ADAPTIVE) -> np.ndarray:
        """(looks, months) of constant months."""
        rng = np.random.default_rng([9, int(1_000 * ratio), int(per_hour)])
        months = drawn(rng, Traffic(per_hour=per_hour), months=_CELL_MONTHS, hours=MONTH_H, good=ratio)
        return adaptive_force(declared, months, looks(declared, months))

    def shares(force: np.ndarray) -> str:
        parts = {"healthy": force == 0, "undecided": force == -1, "warning": force == 1, "critical": force == 2}
        return ", ".join(f"{name} {np.mean(part):.1%}" for name, part in parts.items())

    for ratio in (0.86, 0.70):
        force = month(ratio)
        begun = {
            level: a_month(goals.begun(force, code), _CELL_MONTHS) for level, code in (("warning", 1), ("critical", 2))
        }
        put(
            f"constant {ratio:.2f}",
            f"{shares(force)}; a month {begun['warning']} begin warning, {begun['critical']} critical",
        )
    alone = replace(ADAPTIVE, policy=replace(ADAPTIVE.policy, thresholds=Thresholds(warning=0.70, critical=0.70)))
    put(
        "constant 0.75, both thresholds 0.70",
        f"{a_month(goals.begun(month(0.75, declared=alone), 2), _CELL_MONTHS)} critical a month",
    )
    force = month(0.90, 1.0)
    put(
        "one verdict an hour, constant 0.90",
        f"{shares(force)}; {a_month(goals.begun(force), _CELL_MONTHS)} false warnings a month",
    )
    put("one verdict an hour, 0.96 to 0.60", f"warning after {delays(ADAPTIVE, Traffic(per_hour=1), 0.60)} minutes")
    for bad, minutes in ((0.0, 3), (0.1, 3), (0.2, 3), (0.3, 3), (0.3, 4), (0.3, 5)):
        begin_h, hours = 6.0, minutes / 60
        rng = np.random.default_rng(30)
        months = drawn(rng, Traffic(per_hour=600), months=90, hours=begin_h + 0.5, good=0.96)
        outage = (months.at_h >= begin_h) & (months.at_h < begin_h + hours)
        months = replace(months, passed=np.where(outage, rng.random(outage.shape) < bad, months.passed))
        times_h = looks(ADAPTIVE, months)
        plain = np.stack(list(bound_levels(PLAIN, months, times_h)), axis=1)
        for mode, found in (("adaptive", adaptive_force(ADAPTIVE, months, times_h)), ("plain average", plain)):
            firsts = [goals.first_h(found, times_h, begin_h, code) for code in (1, 2)]
            hits = [goals.count_within(first, begin_h + hours + 0.05)[0] for first in firsts]
            put(
                f"{bad:.2f} for {minutes} minutes at 600 an hour, {mode}",
                f"of 90 until three minutes after it: {hits[0]} warning, {hits[1]} critical",
            )
    text = f"50 verdicts an hour but where stated, {_CELL_MONTHS} months a cell, mode `adaptive` but where stated.\n\n"
    return "\n## At the edges\n\n" + text + table(("cell", "found"), rows)


def fallen_table() -> str:
    """Alarms of a service that fell and is still healthy, in the month after that."""
    rows = []
    for per_hour in RATES:
        cells = []
        for bad in (0.92, 0.90, 0.88):
            count = 0
            for months in batches(
                Traffic(per_hour=per_hour), 11, MONTHS, hours=240 + MONTH_H, good=0.97, bad=bad, from_h=240.0
            ):
                times_h = looks(ADAPTIVE, months)
                for force in levels(ADAPTIVE, months, times_h):
                    count += int((times_h[beginnings(force)] > 240).sum())
            cells.append(a_month(count))
        rows.append((str(per_hour), *cells))
        progress(rows[-1])
    text = "Mode `adaptive`: alarms in the month after a service fell that had passed at 0.97 for ten days.\n\n"
    return (
        "\n## A fall that leaves a service healthy\n\n"
        + text
        + table(("verdicts an hour", "to 0.92", "to 0.90", "to 0.88"), rows)
    )


def a_month(count: int, months: int = MONTHS) -> str:
    """So many in all months, as a number a month with its 95 % interval (Byar's approximation)."""
    low = count * (1 - 1 / (9 * count) - 1.96 / (3 * count**0.5)) ** 3 if count else 0.0
    more = count + 1
    high = more * (1 - 1 / (9 * more) + 1.96 / (3 * more**0.5)) ** 3
    mean, low, high = (f"{float(f'{x / months:.2g}'):,g}" for x in (count, low, high))
    return f"{mean} ({low}–{high})"


def delays(declared: Declaration, traffic: Traffic, bad: float, good: float = 0.96) -> str:
    """Minutes from the change until warning or worse: median and 90th percentile."""
    waits = []
    for months in batches(traffic, 7, RUNS, hours=BEFORE_H + AFTER_H, good=good, bad=bad, from_h=BEFORE_H):
        times_h = looks(declared, months)
        for force in levels(declared, months, times_h):
            after = times_h[beginnings(force)]
            after = after[after > BEFORE_H]
            waits.append((after[0] - BEFORE_H) * 60 if len(after) else float("inf"))
    ordered = sorted(waits)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.9)]
    return " / ".join("–" if value == float("inf") else f"{value:.0f}" for value in (middle, late))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def false_alarm_table() -> str:
    rows = []
    for per_hour in RATES:
        traffic = Traffic(per_hour=per_hour)
        for mode, declared in MODES.items():
            reported = [false_alarms(declared, traffic, ratio) for ratio in HEALTHY]
            rows.append((str(per_hour), mode, *(alarms for alarms, _ in reported), f"{reported[0][1]:.0%}"))
            progress(rows[-1])
        rows.append((str(per_hour), "early warning", *(early(traffic, ratio) for ratio in HEALTHY), ""))
        progress(rows[-1])
    head = ("verdicts an hour", "mode", *(f"at {ratio:.2f}" for ratio in HEALTHY), "insufficient data, of the time")
    return "\n## False alarms a month\n\n" + table(head, rows)


def kinds_table() -> str:
    rows = []
    for kind, traffic in KINDS.items():
        alarms = [false_alarms(declared, traffic, 0.90) for declared in (ADAPTIVE, BOUND)]
        waits = [delays(declared, traffic, 0.75) for declared in (ADAPTIVE, BOUND)]
        rows.append(
            (kind, alarms[0][0], waits[0], f"{alarms[0][1]:.0%}", alarms[1][0], waits[1], f"{alarms[1][1]:.0%}")
        )
        progress(rows[-1])
    head = (
        "traffic", "adaptive: at 0.90", "to 0.75, minutes", "insufficient", "bound: at 0.90", "to 0.75, minutes",
        "insufficient",
    )  # fmt: skip
    text = "50 verdicts an hour, but for the last: false alarms a month; minutes until a drop from 0.96 is noticed.\n\n"
    return "\n## Other traffic\n\n" + text + table(head, rows)


def delay_table() -> str:
    rows = []
    for per_hour in RATES:
        for mode, declared in MODES.items():
            rows.append((str(per_hour), mode, *(delays(declared, Traffic(per_hour=per_hour), bad) for bad in DEGRADED)))
            progress(rows[-1])
    head = ("verdicts an hour", "mode", *(f"to {bad:.2f}" for bad in DEGRADED))
    text = (
        f"From 0.96 down, in minutes: median / 90th percentile of {RUNS} runs until `warning` or worse; – is not "
        f"within {AFTER_H:g} hours.\n\n"
    )
    return "\n## Minutes until a drop is noticed\n\n" + text + table(head, rows)


def coverage_table() -> str:
    """What the interval that is shown covers: 10,000 windows of 2,000 traces each, at each sampling."""
    rows = []
    for ratio in (0.99, 0.95, 0.9, 0.7):
        cells = []
        for rate in (0.01, 0.05, 0.2, 1.0, None):
            rng, inside = np.random.default_rng([5, int(ratio * 100)]), 0
            for _ in range(10_000):
                passed = rng.random(20_000 if rate == 0.01 else 2_000) < ratio
                forced = ~passed & (rng.random(len(passed)) < 0.5) if rate is None else np.zeros(len(passed), bool)
                kept = forced | (rng.random(len(passed)) < (rate or 0.05))
                weight = np.where(forced, 1.0, 1 / (rate or 0.05))[kept]
                n = weight.sum() ** 2 / (weight**2).sum()
                pair = wilson_pair(n * float((weight * passed[kept]).sum() / weight.sum()), n)
                inside += pair.lower <= ratio <= pair.upper
            cells.append(f"{inside / 100:.1f}%")
        rows.append((f"{ratio:g}", *cells))
    head = ("pass rate", "1 %", "5 %", "20 %", "100 %", "half of the failures forced, the rest at 5 %")
    text = "How often the 95 % interval that is shown holds the true pass rate, of 10,000 windows.\n\n"
    return "\n## What the interval covers\n\n" + text + table(head, rows)


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
        at = [average_run_length(chart, p) for p in (0.95, good, 0.8, 0.7, 0.6)]
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


def put_in(page: str, section: str) -> str:
    """The page with a section in place of that of the same title, or before the last."""
    title = section.split("\n")[1]
    begin = page.find(f"\n{title}\n")
    if begin < 0:
        begin = page.index("\n## How to read it\n")
        return page[:begin] + section + page[begin:]
    return page[:begin] + section + page[page.index("\n## ", begin + 1) :]


def progress(row: Sequence[str]) -> None:
    print(" | ".join(row), flush=True)  # noqa: T201 - it takes minutes


if __name__ == "__main__":
    sections = {
        "goals": goals_table, "edges": cells_table, "false-alarms": false_alarm_table, "delays": delay_table,
        "kinds": kinds_table, "fallen": fallen_table, "coverage": coverage_table, "promise": promise_table,
        "run-lengths": run_length_table,
    }  # fmt: skip
    if sys.argv[1:]:  # these alone: the rest of the page stays as it was measured
        text = PAGE.read_text(encoding="utf-8")
        for name in sys.argv[1:]:
            text = put_in(text, sections[name]())
    else:
        head = HEAD.format(described=described(BOUND), months=MONTHS, budget=ADAPTIVE.false_alarms)
        text = "".join([head, *(section() for section in sections.values()), READING])
    PAGE.write_text(text, encoding="utf-8")
