"""Violations: in which ways a workflow verdict says that a trace departed from its scenario."""

from __future__ import annotations

from scoring.result.result import Scored

from .verdict import Verdict

SIDES = ("agents", "tools")
DEPARTURES = ("missing", "unexpected")
CHECKS = ("order", "call_budget", "arguments", "result_use")
KINDS = (*(f"{side}_{departure}" for side in SIDES for departure in DEPARTURES), *CHECKS)
"""Every kind of violation, a closed list: missing and unexpected agents and tools, and each check beyond them."""


def violations(verdict: Verdict) -> list[str]:
    """The kinds of violation in a ``workflow`` verdict, each at most once; nothing for any other rubric."""
    found: list[str] = []
    if verdict.rubric != "workflow":
        return found
    for score in verdict.scores:
        if not isinstance(score.result, Scored) or score.result.value == 1.0:
            continue
        if score.metric in SIDES:
            found += [f"{score.metric}_{what}" for what in DEPARTURES if score.result.details.get(what)]
        elif score.metric in CHECKS:
            found.append(score.metric)
    return found
