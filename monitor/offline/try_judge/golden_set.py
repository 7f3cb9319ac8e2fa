"""Golden set: questions with known answers, of the files of ``golden/`` or of a rubric's labelled examples.

A case holds questions. A mapping under a trap's name holds what the trap changes about the question; a trap of the case
holds what it changes about the case. The right answer stays, unless the trap states its own (``right``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

from sidejudge.integrations.cases import case_of
from sidejudge.monitor.config.document import read_document
from sidejudge.monitor.config.library import EXPECT
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.judging.golden import TRAPS, Expected, GoldenCase, GoldenQuestion, Trap
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.questions.declared import AskDeclared
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.questions.registry import question_of_json
from sidejudge.scoring.result.result import Method, Scored
from sidejudge.scoring.trace.span import Json, JsonRecord
from sidejudge.scoring.verdict.rubric import Rubric


def golden_set() -> tuple[GoldenCase, ...]:
    """All shipped cases; each trap makes one more of its questions, so that no prompt shows a question twice."""
    found: list[GoldenCase] = []
    for file in sorted(files(__package__).joinpath("golden").iterdir(), key=lambda each: each.name):
        listed = read_document(file.read_text(encoding="utf-8"), None, file.name).value
        for one in listed if isinstance(listed, list) else ():
            found += _cases(one)
    return tuple(found)


def _cases(one: Any) -> Iterator[GoldenCase]:
    name, stated = str(one["id"]), one["questions"]
    plain = [_question(f"{name}.{number}", each) for number, each in enumerate(stated, 1)]
    yield _case(name, one["case"], plain)
    for trap in TRAPS:
        changed = [
            _question(f"{twin.name}/{trap}", {**each, **each[trap]}, trap=trap, twin=twin.name)
            for each, twin in zip(stated, plain, strict=True)
            if isinstance(each.get(trap), dict)
        ]
        if changed:
            yield _case(f"{name}/{trap}", one["case"], changed)
    for number, each in enumerate(one.get("traps", ()), 1):
        trap = each["trap"]
        about = f"{name}/{trap}-{number}"
        own = {"right": each["right"]} if "right" in each else {}
        changed = [
            _question(f"{twin.name}/{trap}-{number}", {**of_twin, **own}, trap=trap, twin=twin.name)
            for of_twin, twin in zip(stated, plain, strict=True)
        ]
        yield _case(about, {**one["case"], **each["change"]}, changed)


def _case(name: str, stated: JsonRecord, questions: Sequence[GoldenQuestion]) -> GoldenCase:
    return GoldenCase(case=case_of({**stated, "case_id": name}), questions=tuple(questions))


def _question(name: str, stated: JsonRecord, *, trap: Trap | None = None, twin: str | None = None) -> GoldenQuestion:
    given = {
        key: value for key, value in stated.items() if key != "right" and not (key in TRAPS and isinstance(value, dict))
    }
    right = stated["right"]
    return GoldenQuestion(
        name=name,
        question=question_of_json(given),
        right=right if isinstance(right, dict) else {"value": right},
        trap=trap,
        twin=twin,
    )


def labelled_cases(rubric: Rubric, examples: Iterable[JsonRecord]) -> tuple[GoldenCase, ...]:
    """The questions that a rubric asks a judge about its labelled examples; what is decided without one is left out.

    Args:
        rubric: the wording.
        examples: cases with what is expected of each metric, as ``ReadyRubric.examples``.

    Raises:
        ValueError: an example expects something of a metric that no answer to its question gives.
    """
    found: list[GoldenCase] = []
    for example in examples:
        case = case_of({key: value for key, value in example.items() if key != EXPECT})
        expected = example.get(EXPECT)
        questions = tuple(
            _labelled(rubric.id, case, criterion.metric, wanted)
            for criterion in rubric.criteria
            if criterion.metric.methods == (Method.JUDGE,)
            and isinstance(expected, dict)
            and (wanted := expected.get(criterion.metric.id)) is not None
        )
        if questions:
            found.append(GoldenCase(case=case, questions=questions))
    return tuple(found)


def _labelled(rubric: str, case: Case, metric: Metric, wanted: Json) -> GoldenQuestion:
    name, question = f"{rubric}.{case.case_id}.{metric.id}", _asked(case, metric)
    if question is None:
        raise ValueError(f"{name}: the case lacks what the question shows")
    right = _right(question, case, metric, wanted)
    if not right:
        raise ValueError(f"{name}: expect is {wanted!r}, which no answer to the question gives")
    return GoldenQuestion(name=name, question=question, right=right, label=f"{rubric}.{metric.id}")


def _asked(case: Case, metric: Metric) -> AskDeclared | None:
    begun = metric.start(case)
    question = next(begun)[0] if isinstance(begun, Generator) else None
    return question if isinstance(question, AskDeclared) else None


def _right(question: AskDeclared, case: Case, metric: Metric, wanted: Json) -> Expected:
    """The answers that give the value that is expected; empty where none does."""
    listed = [wanted, wanted] if isinstance(wanted, bool) else wanted if isinstance(wanted, list) else []
    ends = [float(each) for each in listed if isinstance(each, int | float)]
    if question.kind not in ("boolean", "one_of"):
        return {"count" if question.kind == "findings" else "value": ends} if ends else {}
    offered = (True, False) if question.kind == "boolean" else question.choices
    fitting = [each for each in offered if ends and ends[0] <= _valued(case, metric, each) <= ends[-1]]
    return {"value": fitting[0] if len(fitting) == 1 else fitting} if fitting else {}


def _valued(case: Case, metric: Metric, answer: object) -> float:
    """The value that an answer gives the metric."""
    begun = metric.start(case)
    try:
        if isinstance(begun, Generator):
            next(begun)
            begun.send((Answer(value=answer, method=Method.JUDGE, reason=""),))
    except StopIteration as ended:
        if isinstance(ended.value, Scored):
            return ended.value.value
    raise ValueError(f"{metric.id} gives no value to {answer!r}")
