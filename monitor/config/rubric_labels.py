"""Labels that people gave, read from the files that a rubric names, for the questions that show some as examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sidejudge.scoring.trace.span import Json

from .document import ReadFiles

if TYPE_CHECKING:
    from sidejudge.scoring.case.case import Case
    from sidejudge.scoring.declared.labelled import LabelledCase
    from sidejudge.scoring.runs.label_line import LabelLine, Said
    from sidejudge.scoring.runs.verdict_line import VerdictLine

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
        """Each labelled case with its labels, and verdicts by trace or case; a text says what is wrong with a file."""
        from sidejudge.integrations.cases import read_case  # noqa: PLC0415  # only where labels are read
        from sidejudge.scoring.runs.label_line import read_label  # noqa: PLC0415  # as above
        from sidejudge.scoring.runs.verdict_line import read_verdict  # noqa: PLC0415  # as above

        try:
            labels = self._lines(given.get("labels"), lambda line, _: read_label(_json(line)))
            cases = self._lines(given.get("cases"), read_case)
            judged = self._lines(given["verdicts"], lambda line, _: read_verdict(_json(line))) if _has(given) else []
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


def _has(given: dict[str, Json]) -> bool:
    return given.get("verdicts") is not None


def _json(line: str) -> Json:
    import orjson  # noqa: PLC0415  # as above

    parsed: Json = orjson.loads(line)
    return parsed


def _found(about: Sequence[LabelLine], judged: VerdictLine | None) -> Said | None:
    """What the judge found: by the file of verdicts, else by what a label's own line states."""
    from sidejudge.scoring.runs.label_line import our_value  # noqa: PLC0415  # as above

    found = our_value(judged, about[0]) if judged is not None else None
    return found if found is not None else next((each.verdict for each in about if each.states_verdict), None)
