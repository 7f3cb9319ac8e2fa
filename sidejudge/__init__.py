"""The public names for plugins and notebooks. They keep their meaning within a major version.

    from sidejudge import Case, ask, load_config, score

Each name is loaded when it is first used, so that ``import sidejudge`` costs next to nothing. All other packages are
internal and may change with any release.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
    from sidejudge.monitor.config.load import load_config
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.offline.experiment.score_cases import Verdicts, score
    from sidejudge.scoring.case.case import Case
    from sidejudge.scoring.declared.ask import ask
    from sidejudge.scoring.errors import SidejudgeError
    from sidejudge.scoring.metrics.metric import Metric
    from sidejudge.scoring.questions.question import Answer, NoAnswer
    from sidejudge.scoring.result.reason import Reason, part, quoted
    from sidejudge.scoring.result.result import Bands, Blocker, Failed, NotApplicable, Scored, Unavailable
    from sidejudge.scoring.trace.span import Span, ToolCall
    from sidejudge.scoring.trace.trace import Trace
    from sidejudge.scoring.verdict.rubric import Criterion, Rubric
    from sidejudge.scoring.verdict.verdict import Verdict

__all__ = [
    "Answer", "Bands", "Blocker", "Case", "Criterion", "DestinationUnreachableError", "Failed", "Metric", "NoAnswer",
    "NotApplicable", "Reason", "RefusedError", "Rubric", "Scored", "SidejudgeError", "Span", "ToolCall", "Trace",
    "Unavailable", "Verdict", "Verdicts", "ask", "configured", "load_config", "part", "quoted", "score",
]  # fmt: skip

_MODULES = {
    "integrations.backoff": ("DestinationUnreachableError", "RefusedError"),
    "monitor.config.load": ("load_config",),
    "monitor.config.rubrics": ("configured",),
    "scoring.case.case": ("Case",),
    "scoring.declared.ask": ("ask",),
    "scoring.errors": ("SidejudgeError",),
    "monitor.offline.experiment.score_cases": ("Verdicts", "score"),
    "scoring.metrics.metric": ("Metric",),
    "scoring.questions.question": ("Answer", "NoAnswer"),
    "scoring.result.reason": ("Reason", "part", "quoted"),
    "scoring.result.result": ("Bands", "Blocker", "Failed", "NotApplicable", "Scored", "Unavailable"),
    "scoring.trace.span": ("Span", "ToolCall"),
    "scoring.trace.trace": ("Trace",),
    "scoring.verdict.rubric": ("Criterion", "Rubric"),
    "scoring.verdict.verdict": ("Verdict",),
}
_MODULE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
