"""Scenario text: what one run did, as a scenario that may be copied into a configuration.

Regression test text: a failing run as a test that may be copied into a test set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import yaml

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.runs.test_set import case_as_test, failing_metrics_of

_MOST = 30
"""Names of agents and tools that are listed."""


def scenario_text(case: Case) -> str:
    """The run as YAML; empty where no agent and no tool was seen.

    A single run is an example and no rule: the order of calls is left out, and each tool may run as often as it did.
    """
    tools = Counter(call.name for call in case.tools_used or ())
    agents = list(dict.fromkeys(case.agents_called or ()))
    if not tools and not agents:
        return ""
    seen: dict[str, Sequence[str] | Mapping[str, int]] = {}
    if agents:
        seen["agents_should_include"] = agents[:_MOST]
    if tools:
        seen["tools_should_include"] = list(tools)[:_MOST]
        seen["max_calls"] = dict(list(tools.items())[:_MOST])
    name = case.name or "run"
    return yaml.safe_dump({name: seen}, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


_TO_FILL_IN = "(what would have been right)"


def regression_test_text(case: Case, verdicts: Sequence[Mapping[str, object]]) -> str:
    """The run as YAML; empty where nothing failed, or the run has no input."""
    if case.input in (None, "", [], {}) or all(verdict.get("passed") is not False for verdict in verdicts):
        return ""
    stated = {
        "trace_id": case.trace_id, "case_id": case.case_id, "task": case.task, "input": case.input,
        "config": dict(case.config), "evaluation_criteria_override": case.evaluation_criteria_override,
        "name": case.name, "service": case.service, "environment": case.environment,
    }  # fmt: skip
    expected = _TO_FILL_IN if case.expected_outcome is None else case.expected_outcome
    test = case_as_test(stated, expected, failing_metrics_of(verdicts))
    return yaml.safe_dump([test], sort_keys=False, allow_unicode=True, width=100)
