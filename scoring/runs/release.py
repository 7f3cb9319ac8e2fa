"""Release: whether what was run may be released: every gate of every run, and the metadata that makes it repeatable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.spread import MeanAndDeviation

from .aggregates import FIELDS, Aggregates
from .gates import GATES, GateResult, ReleaseGate, check_gates
from .metadata import MetadataReport
from .repeats import REPEATED, over_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run: its name, what it comes to, and how it stands against the gates."""

    name: str
    aggregates: Aggregates
    gates: tuple[GateResult, ...]

    @property
    def ready(self) -> bool:
        """Whether it meets every gate that decides."""
        return all(result.met for result in self.gates if not result.gate.own)

    @property
    def reliable(self) -> bool:
        """Whether these gates rest on enough samples: it meets those of our own."""
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
        """Whether what decides rests on enough samples of every run."""
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
    """The decision on runs, by name. ``strict`` (a release, not a rehearsal): a floating model name is refused.

    ``remarks`` on where the runs come from stand before the other warnings; ``gates`` are held against each run.
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
    """Fields that some of the samples lack, so that their figures are of the others."""
    partly = [f"{field} {run.known[field]}" for field in FIELDS if 0 < run.known[field] < run.n]
    where = f"{name}: " if name else ""
    return [f"{where}of {run.n} samples only some have {', '.join(partly)}: figures are of those"] if partly else []
