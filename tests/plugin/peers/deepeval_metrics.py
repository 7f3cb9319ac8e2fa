"""A metric of deepeval as a function of a case."""

import os

os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")  # before the import, which sends otherwise

from deepeval.metrics import PatternMatchMetric  # as above
from deepeval.test_case import LLMTestCase  # as above

from sidejudge import Case, Scored  # as above


def matches(case: Case, pattern: str):
    """1 where the whole answer matches a pattern."""
    metric = PatternMatchMetric(pattern=pattern)
    score = metric.measure(
        LLMTestCase(input=str(case.input), actual_output=str(case.model_output)), _show_indicator=False
    )
    return Scored(value=float(score), reason=metric.reason or "")
