"""Rubrics with Langfuse's own SDK: evaluators of experiments, aggregates of runs, and a guard. Extra ``langfuse``.

from langfuse import get_client
from sidejudge.langfuse import evaluators, run_evaluators

get_client().get_dataset("golden").run_experiment(
    name="release", task=answer, evaluators=evaluators("qa"), run_evaluators=run_evaluators("qa")
)
"""

from __future__ import annotations

from sidejudge.monitor.offline.experiment.evaluators import evaluators, run_evaluators
from sidejudge.monitor.offline.experiment.guard import GuardError, guard

__all__ = ["GuardError", "evaluators", "guard", "run_evaluators"]
