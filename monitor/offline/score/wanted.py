"""Wanted: the verdict that comes next in a run; an existing one is compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Wanted(NamedTuple):
    """A case under a version of a rubric. ``extra`` is what the verdict carries beside its own fields.

    Among that is ``case_digest``, of the case as it would be judged now: a verdict on another wording does not stand.
    """

    case_id: str
    rubric: str
    version: str
    extra: Mapping[str, object]

    def fault(self, stated: Mapping[str, object]) -> str | None:
        """Why a verdict that stands is not this one; ``None`` when it is."""
        found = (stated.get("case_id"), stated.get("rubric"), stated.get("rubric_version"))
        if found != (self.case_id, self.rubric, self.version) or stated.get("run") != self.extra.get("run"):
            was, now = _run(stated), _run(self.extra)
            return (
                f"holds the verdict of case {found[0]!r} by {found[2] or found[1]}{was}, "
                f"where case {self.case_id!r} by {self.version}{now} is next"
            )
        digest = self.extra.get("case_digest")
        if stated.get("case_digest") != digest:
            return (
                f"case {self.case_id!r} or its scenario has changed since this verdict was "
                f"reached (case_digest {stated.get('case_digest')}, now {digest})"
            )
        if ("model_output" in stated) is not ("model_output" in self.extra):
            return f"was written {'with' if 'model_output' in stated else 'without'} --keep-outputs"
        return None


def _run(verdict: Mapping[str, object]) -> str:
    run = verdict.get("run")
    return "" if run is None else f" in run {run}"
