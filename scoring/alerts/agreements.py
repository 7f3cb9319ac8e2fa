"""Agreements: how far verdicts agree with people's, kept up as labels come in one by one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from scoring.result import Unavailable
from scoring.statistics.agreement import Confusion, cohen_kappa

from .facts import Agreement

MAX_PAIRS = 2000
"""Pairs of one rubric that are kept: the latest, so that a judge that changed is not excused by its past."""
MAX_RUBRICS = 100


@dataclass(slots=True)
class _Pairs:
    version: str
    said: OrderedDict[tuple[str, str], tuple[bool, bool]] = field(default_factory=OrderedDict)


class Agreements:
    """Pairs of passes, people's and ours, by rubric; what is told is Cohen's kappa of the latest.

    A pair is known by its subject (a trace or a case) and who labelled it: hearing it again, with another label or a
    revised verdict, replaces it. Another version of a rubric begins anew, for it is another judge. No clock.
    """

    def __init__(self) -> None:
        self._rubrics: dict[str, _Pairs] = {}

    def hear(self, *, rubric: str, version: str, subject: str, by: str, people: bool, ours: bool) -> None:
        """Take one pair. Beyond ``MAX_RUBRICS`` further rubrics are not kept."""
        known = self._rubrics.get(rubric)
        if known is None and len(self._rubrics) >= MAX_RUBRICS:
            return
        if known is None or known.version != version:
            known = self._rubrics[rubric] = _Pairs(version)
        known.said[subject, by] = (people, ours)
        known.said.move_to_end((subject, by))
        if len(known.said) > MAX_PAIRS:
            known.said.popitem(last=False)

    def __call__(self) -> list[Agreement]:
        """The agreement of every rubric of which it can be told, in the order of their first pairs."""
        told = []
        for rubric, known in self._rubrics.items():
            pairs = list(known.said.values())
            kappa = cohen_kappa(
                Confusion(tuple(tuple(pairs.count((x, y)) for y in (False, True)) for x in (False, True)))
            )
            if not isinstance(kappa, Unavailable):
                told.append(Agreement(rubric=rubric, kappa=kappa.value, upper=kappa.upper, n=len(pairs)))
        return told
