"""Regression test text: a failing run as a test that may be copied into a test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.runs.case_as_test import case_as_test, failing_metrics_of

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
