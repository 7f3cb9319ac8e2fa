"""Writes docs/reference/judge-error.md: how often the corrected pass rate's interval holds what people would find.

A part of ``make status``; a minute. 2,000 repetitions a cell.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1])]

import numpy as np  # noqa: E402  # the path is set first

from sidejudge.scoring.result.result import Unavailable  # noqa: E402  # the path is set first
from sidejudge.scoring.statistics.interval import wilson_pair  # noqa: E402  # the path is set first
from sidejudge.scoring.statistics.ppi import Corrected, LabelSums, prediction_powered, rectified, rogan_gladen  # noqa: E402  # the path is set first

PAGE = HERE.parents[1] / "docs" / "reference" / "judge-error.md"
RUNS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """People pass ``rate`` of the window and ``labelled_rate`` of the labelled; the judge is right of so many.

    ``size`` verdicts a session agree (design effect); ``forced``: half of what the judge fails is drawn at weight 1,
    the rest at a twentieth; ``doubtful``: labels are asked for where the judge failed, ten times as often.
    """

    rate: float = 0.85
    labelled_rate: float | None = None
    positive: float = 0.95
    negative: float = 0.8
    labels: int = 200
    verdicts: int = 120
    size: int = 1
    forced: bool = False
    doubtful: bool = False


WORLDS = {
    "85 % pass, 200 labels, 120 verdicts": World(),
    "50 labels": World(labels=50),
    "1,000 labels": World(labels=1_000),
    "95 % pass": World(rate=0.95),
    "60 % pass": World(rate=0.6),
    "a poor judge (0.85 and 0.6)": World(positive=0.85, negative=0.6),
    "2,000 verdicts": World(verdicts=2_000),
    "sessions of 5 that agree": World(size=5),
    "half of the failed forced, the rest at 5 %, labels too": World(forced=True, verdicts=2_000, labels=2_000),
    "fell from 90 % (labels) to 75 % (window)": World(rate=0.75, labelled_rate=0.9),
    "fell from 90 % to 60 %": World(rate=0.6, labelled_rate=0.9),
    "labels asked for where the judge fails": World(doubtful=True),
}

HEAD = f"""# How good the corrected pass rate is

Written by `make status`. How often the 95 % interval holds the pass rate that people would have found, of {RUNS:,}
repetitions a cell, and its mean width. True-positive rate 0.95 and true-negative rate 0.8 where no other is given.

- *Uncorrected*: the judge's own pass rate.
- *Rogan–Gladen*: `corrected` of `/v1/status`; `alerts.corrected: rogan_gladen`.
- *Prediction-powered, a window*: `prediction_powered` of `/v1/status`; `alerts.corrected: ppi`.
- *Prediction-powered, tuned*: `pass_rate_ppi` of `sidejudge calibrate`, of a file.

"""
READING = """
## How to read it

- Without a correction the interval is about the judge, not about people, and more verdicts make it worse.
- Rogan–Gladen follows a fall, because a judge's errors stay what they were. It needs labels that people failed, and is
  wider with a poor judge.
- Prediction-powered inference of a window lags where quality falls, by the change of the judge's error. Tuned, it is
  the narrowest where labels are a random part of the verdicts, and wrong where they are of another time, which it only
  notices of large falls: it is for files.
- Labels that were asked for because of the verdict are no sample: all are wrong then, or unavailable. That is why
  labels from the annotation queue are left out (`sinks.langfuse.annotation_queue`).
"""


def drawn(rng: np.random.Generator, world: World) -> tuple[float, float, LabelSums]:
    """The judge's rate of the window, its effective size, and the labels."""
    people, judge, weight = judged(rng, world, world.rate, world.verdicts, world.size)
    rate, size = float((weight * judge).sum() / weight.sum()), float(weight.sum() ** 2 / (weight**2).sum()) / world.size
    theirs = world.labelled_rate if world.labelled_rate is not None else world.rate
    people, judge, weight = judged(rng, world, theirs, world.labels * (10 if world.doubtful else 1), 1)
    if world.doubtful:
        asked = rng.random(len(judge)) < np.where(judge, 0.1, 1.0)
        people, judge, weight = people[asked], judge[asked], weight[asked]
    cells = [people & judge, people & ~judge, ~people & judge, ~people & ~judge]
    both, people_only, judge_only, neither = (float(weight[cell].sum()) for cell in cells)
    labels = LabelSums(
        both=both, people_only=people_only, judge_only=judge_only, neither=neither,
        squared=float((weight**2).sum()), n=len(weight),
    )  # fmt: skip
    return rate, size, labels


def judged(
    rng: np.random.Generator, world: World, rate: float, n: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What people and the judge pass, and weights."""
    people = np.repeat(rng.random(n // size) < rate, size)
    judge = np.repeat(rng.random(n // size), size) < np.where(people, world.positive, 1 - world.negative)
    if not world.forced:
        return people, judge, np.ones(len(people))
    forced = ~judge & (rng.random(len(judge)) < 0.5)
    kept = forced | (rng.random(len(judge)) < 0.05)
    return people[kept], judge[kept], np.where(forced, 1.0, 20.0)[kept]


def cells(world: World, number: int) -> list[str]:
    rng = np.random.default_rng([31, number])
    held, width, known = np.zeros(4), np.zeros(4), np.zeros(4)
    for _ in range(RUNS):
        rate, size, labels = drawn(rng, world)
        pair = wilson_pair(min(size, size * rate), size)
        found: list[Corrected | Unavailable] = [
            Corrected(rate, pair.lower, pair.upper) if pair else Unavailable("no verdict"),
            rogan_gladen(rate, size, labels.true_positive, labels.true_negative),
            rectified(rate, size, labels), prediction_powered(rate, size, labels),
        ]  # fmt: skip
        for place, each in enumerate(found):
            if not isinstance(each, Unavailable):
                known[place] += 1
                held[place] += each.lower <= world.rate <= each.upper
                width[place] += each.upper - each.lower
    return [
        f"{held[k] / known[k]:.1%}, ±{width[k] / known[k] / 2:.3f}"
        + (f" (unavailable {1 - known[k] / RUNS:.0%})" if known[k] < 0.995 * RUNS else "")
        if known[k]
        else "unavailable"
        for k in range(4)
    ]


if __name__ == "__main__":
    head = ("world", "uncorrected", "Rogan–Gladen", "prediction-powered, a window", "prediction-powered, tuned")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for number, (name, world) in enumerate(WORLDS.items()):
        lines.append("| " + " | ".join([name, *cells(world, number)]) + " |")
        print(lines[-1], flush=True)  # noqa: T201  # it takes a minute
    PAGE.write_text(HEAD + "\n".join(lines) + "\n" + READING, encoding="utf-8")
