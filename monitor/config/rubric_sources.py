"""The sources of declared rubrics: built-in rubrics, functions, and external prompts.

Labels that people gave, read from the files that a rubric names, for the questions that show some as examples.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from pydantic import ValidationError

from sidejudge.scoring.status.snapshots import PromptSnapshot
from sidejudge.scoring.trace.span import Json

from .langfuse import LangfuseSink, LangfuseSource
from .model import StoreSection
from .read_files import ReadFiles

if TYPE_CHECKING:
    from sidejudge.integrations.langfuse.client import Access
    from sidejudge.integrations.python_metrics.process import FunctionProcess
    from sidejudge.scoring.case.case import Case
    from sidejudge.scoring.declared.ask import PromptText
    from sidejudge.scoring.declared.labelled import LabelledCase
    from sidejudge.scoring.declared.metric import PythonMetric, Sources
    from sidejudge.scoring.questions.question import Begun
    from sidejudge.scoring.runs.label_line import LabelLine, LabelValue
    from sidejudge.scoring.runs.verdict_line import VerdictLine
    from sidejudge.scoring.trace.span import Json

log = logging.getLogger("sidejudge.prompts")

FACT: Final = "langfuse_prompts"
"""Name of the fact of the store that holds the texts that were read last."""
LATEST: Final = "production"
"""Langfuse's default label."""

_Key: TypeAlias = tuple[str, str | None, int | None]


def _project(access: Access) -> str:
    """Which project a text was read from: another one's is none to fall back on."""
    return hashlib.sha256(f"{access.base_url}\x00{access.public_key}".encode()).hexdigest()[:16]


def sources(folder: Path, prompts: LangfusePrompts) -> Sources:
    """For rubrics that are declared in a folder, whose functions are found there too."""
    from sidejudge.scoring.declared.metric import Sources  # noqa: PLC0415  # only where rubrics are declared
    from sidejudge.scoring.rubrics import RUBRICS  # noqa: PLC0415  # as above

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
        from sidejudge.integrations.python_metrics.process import FunctionProcess  # noqa: PLC0415  # only where there are functions
        from sidejudge.scoring.declared.metric import PythonMetric  # noqa: PLC0415  # as above

        process = self._process = self._process or FunctionProcess([self._folder])
        digest = process.resolve(name)
        given = dict(arguments)

        def measure(case: Case) -> Begun:
            return process.call(name, given, case, timeout_s=timeout_s, passes=passes)

        return PythonMetric(measure=measure, formula=f"{name}, source {digest}")


class LangfusePrompts:
    """Texts of questions by name, each read once; why there is none where it cannot be had.

    While Langfuse is unreachable the last text is used, from the reading ``before`` or from an earlier process by the
    store. Without any text only the metrics that need it are unavailable.

    Args:
        data: The configuration as it was given: its Langfuse holds the prompts, its store those that were read.
        before: The prompts of the reading before this one.
    """

    def __init__(self, data: Mapping[str, Json], before: LangfusePrompts | None = None) -> None:
        self._data = data
        self._known: Mapping[_Key, PromptText | str] = before.texts if before is not None else {}
        self._stored: Mapping[_Key, PromptText] | None = None
        self.texts: dict[_Key, PromptText | str] = {}
        self._unread: Mapping[_Key, str] = {}

    def __call__(self, name: str, *, label: str | None, version: int | None) -> PromptText | str:
        """The text, or why there is none."""
        key = (name, label, version)
        if key not in self.texts:
            found = self._requested(*key)
            if isinstance(found, str):
                self._unread = {**self._unread, key: found}
                last = self._last(key)
                log.warning("%s", found, extra={"prompt": name, "used": last.version if last is not None else None})
                found = found if last is None else last
            self.texts[key] = found
        return self.texts[key]

    def changed(self) -> list[str]:
        """Names of prompts with a changed text. Blocks; an unreadable prompt counts as unchanged."""
        asked = {
            key: self._requested(*key)
            for key, found in self.texts.items()
            if key[2] is None or isinstance(found, str) or key in self._unread
        }
        self._unread = {key: now for key, now in asked.items() if isinstance(now, str)}
        return [key[0] for key, now in asked.items() if not isinstance(now, str) and now != self.texts[key]]

    def snapshots(self) -> list[PromptSnapshot]:
        """Which text each prompt is used with, and why no newer one can be read."""
        unread = self._unread
        return [
            PromptSnapshot(
                name=name, requested=f"version {version}" if version is not None else f"label {label or LATEST}",
                used=None if isinstance(text, str) else text.version, reason=unread.get((name, label, version), ""),
            )
            for (name, label, version), text in self.texts.items()
        ]  # fmt: skip

    def to_json(self) -> dict[str, Json]:
        """The texts that were read, to be left in the store under ``FACT``."""
        access = self._access()
        texts: list[Json] = [
            [*key, text.text, text.version] for key, text in self.texts.items() if not isinstance(text, str)
        ]
        return {"project": "" if access is None else _project(access), "texts": texts}

    def _last(self, key: _Key) -> PromptText | None:
        """The text that was read last."""
        known = self._known.get(key)
        if known is not None and not isinstance(known, str):
            return known
        if self._stored is None:
            self._stored = self._left_in_the_store()
        return self._stored.get(key)

    def _left_in_the_store(self) -> Mapping[_Key, PromptText]:
        from sidejudge.integrations.store.archive import read_fact  # noqa: PLC0415  # only where a prompt cannot be read
        from sidejudge.integrations.store.errors import StoreError  # noqa: PLC0415  # as above
        from sidejudge.scoring.declared.ask import PromptText  # noqa: PLC0415  # as above

        access, section = self._access(), self._data.get("store") or {}
        try:
            store = StoreSection.model_validate(section)
            found = read_fact(Path(store.path), FACT)
        except (StoreError, ValidationError):
            return {}  # there is no store yet, or it is not for this version
        if access is None or not isinstance(found, dict) or found.get("project") != _project(access):
            return {}
        return {(name, label, version): PromptText(text, used) for name, label, version, text, used in found["texts"]}

    def _requested(self, name: str, label: str | None, version: int | None) -> PromptText | str:
        from sidejudge.integrations.langfuse.prompts import PromptError, read_prompt  # noqa: PLC0415  # only where there are prompts
        from sidejudge.scoring.declared.ask import PromptText  # noqa: PLC0415  # as above

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


T = TypeVar("T")


class RubricLabels:
    """The labelled cases of a rubric by metric. The files are read with the first question that asks for them.

    Args:
        rubric: the rubric's name, as labels and verdicts state it.
        given: the section ``labels`` of the rubric, which is not validated yet.
        folder: where its files are looked for.
        files: reads files, and remembers them for the watch over changes.
    """

    def __init__(self, rubric: str, given: Json, folder: Path, files: ReadFiles) -> None:
        self._rubric, self._given, self._folder, self._files = rubric, given, folder, files
        self._read: tuple[list[tuple[Case, list[LabelLine]]], dict[str, VerdictLine]] | str | None = None

    def __call__(self, metric: str) -> Sequence[LabelledCase] | str:
        """The labelled cases of a metric, or why there are none."""
        from sidejudge.scoring.declared.labelled import LabelledCase, no_labels  # noqa: PLC0415  # only where labels are

        if not isinstance(self._given, dict):
            return no_labels(metric)
        if self._read is None:
            self._read = self._files_of(self._given)
        if isinstance(self._read, str):
            return self._read
        cases, verdicts = self._read
        found = []
        for case, lines in cases:
            about = [line for line in lines if line.metric == metric]
            if about:
                judged = verdicts.get(case.trace_id or case.case_id) or verdicts.get(case.case_id)
                verdict = _found(about, judged)
                found.append(LabelledCase(case=case, labels=tuple(each.stated for each in about), verdict=verdict))
        if not found:
            return (
                f"no label of {self._given.get('labels')} is about {self._rubric}.{metric} of a case of "
                f'{self._given.get("cases")}; one is {{"case_id": "c1", "rubric": "{self._rubric}", '
                f'"metric": "{metric}", "label": true}}'
            )
        return found

    def _files_of(
        self, given: dict[str, Json]
    ) -> tuple[list[tuple[Case, list[LabelLine]]], dict[str, VerdictLine]] | str:
        """Each labelled case with its labels, and verdicts by trace or case; or the fault of a file, as text."""
        from sidejudge.integrations.cases.lines import read_case  # noqa: PLC0415  # only where labels are read
        from sidejudge.scoring.runs.label_line import read_label  # noqa: PLC0415  # as above
        from sidejudge.scoring.runs.verdict_line import read_verdict  # noqa: PLC0415  # as above

        try:
            labels = self._lines(given.get("labels"), lambda line, _: read_label(_json(line)))
            cases = self._lines(given.get("cases"), read_case)
            path = given.get("verdicts")
            judged = self._lines(path, lambda line, _: read_verdict(_json(line))) if path is not None else []
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        except ValueError as error:
            return str(error)
        by_subject: dict[tuple[str, str], dict[tuple[str, str], LabelLine]] = {}
        for label in labels:
            if label.rubric == self._rubric:  # of several by one person the last counts
                by_subject.setdefault(label.subject, {})[label.metric, label.by] = label
        found = []
        for case in cases:
            of = {
                **by_subject.get(("case_id", case.case_id), {}),
                **by_subject.get(("trace_id", case.trace_id or ""), {}),
            }
            found.append((case, list(of.values())))
        ours = sorted((line for line in judged if line.rubric == self._rubric), key=lambda line: line.revision)
        return found, {name: line for line in ours for name in (line.identity, line.case_id) if name is not None}

    def _lines(self, path: Json, read: Callable[[str, int], T]) -> list[T]:
        if not isinstance(path, str):
            raise ValueError("labels names no file of labels and cases: labels: {labels: FILE, cases: FILE}")  # noqa: TRY004  # a fault of the file
        from sidejudge.scoring.errors import SidejudgeError  # noqa: PLC0415  # only where labels are read

        found = []
        for number, line in enumerate(self._files.read(self._folder / path).split("\n"), 1):
            if line.strip():
                try:
                    found.append(read(line, number))
                except (ValueError, SidejudgeError) as error:
                    raise ValueError(f"{path}: line {number}: {str(error).removeprefix(f'line {number}: ')}") from None
        return found


def _json(line: str) -> Json:
    import orjson  # noqa: PLC0415  # as above

    parsed: Json = orjson.loads(line)
    return parsed


def _found(about: Sequence[LabelLine], judged: VerdictLine | None) -> LabelValue | None:
    """The judge's value: from the file of verdicts, else from the label's own line."""
    from sidejudge.scoring.runs.label_line import our_value  # noqa: PLC0415  # as above

    found = our_value(judged, about[0]) if judged is not None else None
    return found if found is not None else next((each.verdict for each in about if each.states_verdict), None)
