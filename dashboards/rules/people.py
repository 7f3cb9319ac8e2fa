"""People: the judge's errors on labelled traces, and the pass ratio that people would have found, for the whole fleet.

The ratio is Rogan and Gladen's, as in ``scoring.statistics.rogan_gladen``, of the fleet's own pass ratio. Every process
knows the labels of its project, so errors are averaged over processes and never added. Its interval is given by
each process only: it takes the numbers of labels behind the errors.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.integrations.prometheus.families import Family

from .promql import PLACE, SITE, over_processes
from .recordings import pass_ratio
from .rule import RecordingRule

TRUE_POSITIVE = "rubric:sidejudge_agreement_true_positive:avg"
TRUE_NEGATIVE = "rubric:sidejudge_agreement_true_negative:avg"
_ON_RUBRIC = f"on ({', '.join((*SITE, 'rubric'))}) group_left ()"


def corrected(window: str) -> str:
    """The corrected pass ratio; absent where labels do not show both errors, or the judge only guesses."""
    return f"{PLACE}:sidejudge_pass_corrected:ratio_increase{window}"


def people(window: str) -> list[RecordingRule]:
    """Errors, and the corrected ratio over one window."""
    return [
        RecordingRule(record=TRUE_POSITIVE, expr=_of_verdicts(f.AGREEMENT_TRUE_POSITIVE)),
        RecordingRule(record=TRUE_NEGATIVE, expr=_of_verdicts(f.AGREEMENT_TRUE_NEGATIVE)),
        RecordingRule(
            record=corrected(window),
            expr=f"clamp(\n  ({pass_ratio(window)} + {_ON_RUBRIC} {TRUE_NEGATIVE} - 1)\n"
            f"  / {_ON_RUBRIC} ({TRUE_POSITIVE} + {TRUE_NEGATIVE} - 1 > 0),\n  0, 1\n)",
        ),
    ]


def _of_verdicts(family: Family) -> str:
    return over_processes(f'{family.name}{{metric="pass"}}', "metric", operation="avg")
