"""What declared rubrics may refer to: the rubrics that ship, functions, and prompts that lie elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from integrations.python_metrics.process import FunctionProcess
    from scoring.case.case import Case
    from scoring.declared.metric import PythonMetric, Sources
    from scoring.questions.question import Begun
    from scoring.trace.span import Json


def sources(folder: Path) -> Sources:
    """For rubrics that are declared in a folder, whose functions are found there too."""
    from scoring.declared.metric import Sources  # noqa: PLC0415  # only where rubrics are declared
    from scoring.rubrics import RUBRICS  # noqa: PLC0415  # as above

    return Sources(rubrics=RUBRICS, python=_Functions(folder))


class _Functions:
    """Functions by name. Their process is started with the first of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: FunctionProcess | None = None

    def __call__(
        self, name: str, *, timeout_s: float, arguments: Mapping[str, Json], passes: Sequence[str]
    ) -> PythonMetric:
        """The metric that a function is; ``ValueError`` where there is none."""
        from integrations.python_metrics.process import FunctionProcess  # noqa: PLC0415  # only where there are functions
        from scoring.declared.metric import PythonMetric  # noqa: PLC0415  # as above

        process = self._process = self._process or FunctionProcess([self._folder])
        digest = process.resolve(name)
        given = dict(arguments)

        def measure(case: Case) -> Begun:
            return process.call(name, given, case, timeout_s=timeout_s, passes=passes)

        return PythonMetric(measure=measure, formula=f"{name}, source {digest}")
