"""The front door: what a plugin or a notebook needs. These names keep their meaning within a major version.

    from sidejudge import Case, ask, load_config, score

Everything else lies in packages whose insides may change with any release.
"""

from __future__ import annotations

from integrations.delivery_errors import DestinationUnreachableError, RefusedError
from monitor.config.load import load_config
from monitor.config.rubrics import configured
from scoring.case.case import Case
from scoring.declared.ask import ask
from scoring.errors import SidejudgeError
from scoring.evaluators.score import score
from scoring.metrics.metric import Metric
from scoring.questions.question import Answer, NoAnswer
from scoring.result.bands import Bands, Blocker
from scoring.result.result import Failed, NotApplicable, Scored, Unavailable
from scoring.trace.span import Span, ToolCall
from scoring.trace.trace import Trace
from scoring.verdict.rubric import Criterion, Rubric

__all__ = [
    "Answer",
    "Bands",
    "Blocker",
    "Case",
    "Criterion",
    "DestinationUnreachableError",
    "Failed",
    "Metric",
    "NoAnswer",
    "NotApplicable",
    "RefusedError",
    "Rubric",
    "Scored",
    "SidejudgeError",
    "Span",
    "ToolCall",
    "Trace",
    "Unavailable",
    "ask",
    "configured",
    "load_config",
    "score",
]
