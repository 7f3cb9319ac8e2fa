"""Rules and boards as the chart's files: what the configuration decides in them is a mark that the chart replaces.

They are generated under numbers that nothing else has, and each of these is then replaced by its mark. Under other
numbers the same text must come out, so no number is taken for another (``marked``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sidejudge.dashboards.grafana.files import dashboards
from sidejudge.dashboards.rules.groups import rule_file
from sidejudge.dashboards.rules.rule import prometheus_duration
from sidejudge.scoring.alerts.declaration import AlertLimits, ChangeRule, Correction, Declaration
from sidejudge.scoring.status.hysteresis import Hysteresis
from sidejudge.scoring.status.status import Mode, Policy, Thresholds

_S = 10**9
_PASSING_S = 600
KINDS: Mapping[str, tuple[Mode, Correction]] = {
    "reported": ("adaptive", "none"), "bound": ("bound", "none"), "point": ("point", "none"),
    "bound-corrected": ("bound", "rogan_gladen"), "point-corrected": ("point", "rogan_gladen"),
}  # fmt: skip
"""Modes whose rules differ: of *adaptive* Prometheus takes what processes report."""
RUNBOOKS = "https://RUNBOOKS.invalid"


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    window_s: int
    look_s: int
    looks: int
    needed: int
    hold_s: int
    for_s: int
    keep_s: int
    samples: int
    failures: int
    warning: float
    critical: float

    def declared(self, mode: Mode, corrected: Correction) -> Declaration:
        return Declaration(
            policy=Policy(
                thresholds=Thresholds(warning=self.warning, critical=self.critical), mode=mode,
                min_samples=self.samples, min_failures=self.failures,
            ),
            window_ns=self.window_s * _S, look_ns=self.look_s * _S, corrected=corrected,
            hysteresis=Hysteresis(needed=self.needed, looks=self.looks, recovery_margin=0.0, hold_ns=self.hold_s * _S),
            change=ChangeRule(), limits=AlertLimits(for_ns=self.for_s * _S, keep_ns=self.keep_s * _S),
        )  # fmt: skip

    def marks(self) -> Iterator[tuple[str, str]]:
        """Patterns of what stands for what; where one holds another the longer comes first."""
        reach_s = self.looks * self.look_s - self.look_s / 2
        seconds = {
            "window": self.window_s, "look": self.look_s, "look_half": self.look_s / 2, "reach": reach_s,
            "hold": self.hold_s, "hold_critical": self.hold_s + _PASSING_S,
            "for": self.for_s, "for_half": self.for_s / 2, "keep": self.keep_s, "keep_fifteenth": self.keep_s / 15,
        }  # fmt: skip
        found = {re.escape(prometheus_duration(int(value * _S))): name for name, value in seconds.items()}
        yield from sorted(found.items(), key=lambda pair: -len(pair[0]))
        for name in ("samples", "failures", "looks", "needed", "warning", "critical"):
            yield rf"(?<![\w.]){re.escape(str(getattr(self, name)))}(?!\w)", name


_ONE = _Numbers(
    window_s=40_507, look_s=430, looks=94_709, needed=83_911, hold_s=52_361, for_s=3_634, keep_s=7_935, samples=61_813,
    failures=5_413, warning=0.8512341, critical=0.6912347,
)  # fmt: skip
_OTHER = _Numbers(
    window_s=37_127, look_s=394, looks=97_711, needed=85_303, hold_s=47_629, for_s=3_278, keep_s=8_715, samples=72_911,
    failures=6_427, warning=0.8398723, critical=0.6798721,
)  # fmt: skip


def files() -> dict[str, str]:
    """Path below ``files/`` to content."""
    made = {}
    for kind, (mode, corrected) in KINDS.items():
        text = marked(lambda numbers, m=mode, c=corrected: {"rules": rule_file(numbers.declared(m, c), RUNBOOKS)})
        made[f"rules/{kind}.yaml"] = text["rules"].replace(f"runbook_url: {RUNBOOKS}/", "runbook: ")
    boards = marked(lambda numbers: dashboards(numbers.declared("bound", "none")))
    return made | {f"dashboards/{name}": text for name, text in boards.items()}


def marked(write: Callable[[_Numbers], Mapping[str, str]]) -> dict[str, str]:
    """The texts with marks. Raises ``AssertionError`` where two sets of numbers do not lead to the same."""
    made = []
    for numbers in (_ONE, _OTHER):
        texts = dict(write(numbers))
        for stands, name in numbers.marks():
            texts = {path: re.sub(stands, f"@{name}@", text) for path, text in texts.items()}
        made.append(texts)
    assert made[0] == made[1], "a number of the text is taken for one of the configuration"
    return made[0]
