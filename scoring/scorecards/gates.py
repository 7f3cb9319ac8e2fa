"""Gates: conditions on a run for its release (seed 002 §3.4; rubrics §8).

The release is decided from every gate of every run, with the metadata that make it repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sidejudge.scoring.lexical.amount import decided
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.runs.aggregates import FIELDS, Aggregates
from sidejudge.scoring.runs.final import REPEATED, over_runs
from sidejudge.scoring.runs.metadata import MetadataReport
from sidejudge.scoring.statistics.descriptive import MeanAndDeviation

_RATIOS: Final = 100
"""Figures from this size on are no ratios, and are shown with one decimal."""
_ALIKE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class ReleaseGate:
    """A bound on one figure; a value at the bound meets it, compared after rounding to 9 decimals (rubrics §1.3).

    ``own``: the gate is ours, not the seed's. It shows whether the others rest on enough samples, and does not decide.
    """

    figure: str
    comparison: Literal[">=", "<="]
    bound: float
    source: str
    own: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value meets the bound."""
        rounded, bound = round(value, 9), round(self.bound, 9)
        return rounded >= bound if self.comparison == ">=" else rounded <= bound

    def shown(self, value: float) -> str:
        """A value with four decimals (one from 100 on), or as many as leave it on its side of the bound.

        >>> GATES[1].shown(0.9), GATES[1].shown(0.84996)
        ('0.9000', '0.84996')
        """
        return decided(value, self.holds, 4 if abs(value) < _RATIOS else 1)

    @property
    def shown_bound(self) -> str:
        """The bound with all of its digits."""
        return f"{self.bound:.15g}"


GATES = (
    ReleaseGate("aggregate_score", ">=", 0.80, "seed 002 §3.4"),
    ReleaseGate("pass_rate", ">=", 0.85, "seed 002 §3.4"),
    ReleaseGate("faithfulness_failure_rate", "<=", 0.05, "seed 002 §3.4"),
    ReleaseGate("latency_e2e_p95_ms", "<=", 10_000.0, "seed 002 §3.4"),
    ReleaseGate("evaluator_error_rate", "<=", 0.05, "rubrics §8", own=True),
    # Samples without a decision may differ from the others, whatever the cause: so the bound is that for errors.
    ReleaseGate("incomplete_rate", "<=", 0.05, "rubrics §1.5", own=True),
)
"""The first four are the seed's and decide alone. The others show whether a ready run is reliable."""
PASS_RATE = 0.85
"""The lowest pass rate of a custom rubric, as for ``answer``."""


def gates_of_any(pass_rate: float = PASS_RATE) -> tuple[ReleaseGate, ...]:
    """The gates for any other rubric: enough cases pass, and undecided cases are rare."""
    return (ReleaseGate("pass_rate", ">=", pass_rate, "as asked for"), *GATES[-2:])


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """The result of a gate for a run. ``value`` is None when it cannot be computed; the gate is then not met.

    ``reason`` is why a gate is not met, and is empty when it is.
    """

    gate: ReleaseGate
    value: float | None
    met: bool
    reason: str

    def to_json(self) -> dict[str, object]:
        gate = self.gate
        return {
            "gate": gate.figure, "value": self.value, "comparison": gate.comparison, "bound": gate.bound,
            "met": self.met, "reason": self.reason, "source": gate.source,
        }  # fmt: skip


def check_gates(run: Aggregates, gates: Sequence[ReleaseGate] = GATES) -> tuple[GateResult, ...]:
    """Every gate, in order."""
    return tuple(_check(gate, run) for gate in gates)


def _check(gate: ReleaseGate, run: Aggregates) -> GateResult:
    value = run.figures[gate.figure]
    if isinstance(value, Unavailable):
        return GateResult(gate=gate, value=None, met=False, reason=f"cannot be computed: {value.reason}")
    met = gate.holds(value)
    return GateResult(gate=gate, value=value, met=met, reason="" if met else _why(gate, run, value))


def _why(gate: ReleaseGate, run: Aggregates, value: float) -> str:
    if gate.figure == "evaluator_error_rate":
        return f"{_of(run.evaluator_errors, run.n, value)} have no grade; the first: {run.evaluator_error}"
    if gate.figure == "incomplete_rate":
        return f"{_of(run.incomplete, run.n, value)} neither pass nor fail"
    # As many digits as distinguish the value from the bound.
    shown = next((text for d in (4, 9) if (text := f"{value:.{d}g}") != f"{gate.bound:.{d}g}"), repr(value))
    return f"{shown} is {'below' if gate.comparison == '>=' else 'above'} {gate.shown_bound}"


def _of(part: int, n: int, weighed: float) -> str:
    by_weight = "" if abs(part / n - weighed) < _ALIKE else f" ({weighed:.1%} by weight)"
    return f"{part} of {n} samples{by_weight}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run: its name, its aggregates, and its results for the gates."""

    name: str
    aggregates: Aggregates
    gates: tuple[GateResult, ...]

    @property
    def ready(self) -> bool:
        """Whether it meets every gate that decides."""
        return all(result.met for result in self.gates if not result.gate.own)

    @property
    def reliable(self) -> bool:
        """Whether these gates have enough samples: it meets our own gates."""
        return all(result.met for result in self.gates if result.gate.own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The decision. ``refusals`` keep it from being ready, ``warnings`` do not; gates are in ``runs``."""

    runs: tuple[RunReport, ...]
    repeats: Mapping[str, MeanAndDeviation | Unavailable]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """Every run meets every gate that decides, and nothing is refused."""
        return bool(self.runs) and all(run.ready for run in self.runs) and not self.refusals

    @property
    def reliable(self) -> bool:
        """Whether the deciding gates have enough samples in every run."""
        return all(run.reliable for run in self.runs)

    def to_json(self) -> dict[str, object]:
        return {
            "release_ready": self.ready,
            "reliable": self.reliable,
            "runs": [
                {
                    "run": run.name,
                    "gates_met": run.ready,
                    "reliable": run.reliable,
                    "gates": [result.to_json() for result in run.gates],
                    "aggregates": run.aggregates.to_json(),
                }
                for run in self.runs
            ],
            "repeats": {figure: _over_runs(found) for figure, found in self.repeats.items()},
            "refusals": list(self.refusals),
            "warnings": list(self.warnings),
        }


def decide(
    runs: Mapping[str, Aggregates],
    metadata: MetadataReport | None,
    *,
    strict: bool,
    remarks: Sequence[str] = (),
    gates: Sequence[ReleaseGate] = GATES,
) -> Release:
    """The decision on runs, given by name. ``strict`` (a release, not a rehearsal) refuses a floating model name.

    ``remarks`` on the runs' origin precede the other warnings; ``gates`` are applied to each run.
    """
    refusals: list[str] = []
    warnings = list(remarks)
    if metadata is None:
        warnings.append("the gates alone decide: a release needs the run's metadata too")
    else:
        refusals += metadata.problems
        (refusals if strict else warnings).extend(metadata.unpinned)
        warnings += metadata.notes
    for name, run in runs.items():
        warnings += _gaps(name if len(runs) > 1 else "", run)
    sizes = sorted({run.n for run in runs.values()})
    if len(sizes) > 1:
        warnings.append(f"runs differ in size ({', '.join(map(str, sizes))} samples): was one of them cut off?")
    reports = [RunReport(name=name, aggregates=run, gates=check_gates(run, gates)) for name, run in runs.items()]
    return Release(
        runs=tuple(reports),
        repeats={figure: over_runs(tuple(runs.values()), figure) for figure in REPEATED},
        refusals=tuple(refusals),
        warnings=tuple(warnings),
    )


def _over_runs(found: MeanAndDeviation | Unavailable) -> dict[str, object]:
    if isinstance(found, Unavailable):
        return {"mean": None, "sd": None, "reason": found.reason}
    return {"mean": found.mean, "sd": found.sd, "reason": ""}


def _gaps(name: str, run: Aggregates) -> Sequence[str]:
    """Fields that some samples lack, so that their figures cover the others."""
    partly = [f"{field} {run.known[field]}" for field in FIELDS if 0 < run.known[field] < run.n]
    where = f"{name}: " if name else ""
    return [f"{where}of {run.n} samples only some have {', '.join(partly)}: figures are of those"] if partly else []
