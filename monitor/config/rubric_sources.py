"""What declared rubrics may refer to: the rubrics that ship, functions, and prompts that lie elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pydantic import ValidationError

from .langfuse import LangfuseSink, LangfuseSource

if TYPE_CHECKING:
    from integrations.langfuse.client import Access
    from integrations.python_metrics.process import FunctionProcess
    from scoring.case.case import Case
    from scoring.declared.ask import PromptText
    from scoring.declared.metric import PythonMetric, Sources
    from scoring.questions.question import Begun
    from scoring.trace.span import Json

log = logging.getLogger("sidejudge.prompts")

_Key: TypeAlias = tuple[str, str | None, int | None]


def sources(folder: Path, prompts: LangfusePrompts) -> Sources:
    """For rubrics that are declared in a folder, whose functions are found there too."""
    from scoring.declared.metric import Sources  # noqa: PLC0415  # only where rubrics are declared
    from scoring.rubrics import RUBRICS  # noqa: PLC0415  # as above

    return Sources(rubrics=RUBRICS, python=_Functions(folder), prompts=prompts)


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


class LangfusePrompts:
    """Texts of questions by name, each read once; why there is none where it cannot be had.

    A Langfuse that is away at the start costs the metrics that need it, and nothing else. One that is away later costs
    nothing: the text that was read ``before`` holds.

    Args:
        data: The configuration as it was given: its Langfuse holds the prompts.
        before: The prompts of the reading before this one.
    """

    def __init__(self, data: Mapping[str, Json], before: LangfusePrompts | None = None) -> None:
        self._data = data
        self._known: Mapping[_Key, PromptText | str] = before.texts if before is not None else {}
        self.texts: dict[_Key, PromptText | str] = {}

    def __call__(self, name: str, *, label: str | None, version: int | None) -> PromptText | str:
        """The text, or why there is none."""
        key = (name, label, version)
        if key not in self.texts:
            found, known = self._requested(*key), self._known.get(key)
            if isinstance(found, str):
                log.warning("%s", found, extra={"prompt": name})
            self.texts[key] = known if isinstance(found, str) and known is not None else found
        return self.texts[key]

    def changed(self) -> list[str]:
        """Names of prompts that have another text now. It blocks; what cannot be read has not changed."""
        asked = [
            (key, self._requested(*key))
            for key, found in self.texts.items()
            if key[2] is None or isinstance(found, str)
        ]
        return [key[0] for key, now in asked if not isinstance(now, str) and now != self.texts[key]]

    def _requested(self, name: str, label: str | None, version: int | None) -> PromptText | str:
        from integrations.langfuse.prompts import PromptError, read_prompt  # noqa: PLC0415  # only where there are prompts
        from scoring.declared.ask import PromptText  # noqa: PLC0415  # as above

        access = self._access()
        if access is None:
            return f"the prompt {name} lies in Langfuse, and neither sinks.langfuse nor sources.langfuse says which"
        try:
            text, number = read_prompt(access, name, label=label, version=version)
        except PromptError as error:
            return f"the prompt {name} cannot be read: {error}"
        return PromptText(text, f"{name} v{number}")

    def _access(self) -> Access | None:
        """The Langfuse of the configuration, which is not validated yet as a whole."""
        for above, model in (("sinks", LangfuseSink), ("sources", LangfuseSource)):
            section = self._data.get(above)
            given = section.get("langfuse") if isinstance(section, dict) else None
            if isinstance(given, dict):
                try:
                    return model.model_validate(given).access
                except ValidationError:
                    return None  # what is wrong with it is reported with the rest
        return None
