"""Golden set: the questions with known answers that are shipped, read from the files of ``golden/``.

A case holds questions. A mapping under a trap's name holds what the trap changes about the question; a trap of the case
holds what it changes about the case. The right answer stays, unless the trap states its own (``right``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from sidejudge.integrations.cases import case_of
from sidejudge.monitor.config.document import read_document
from sidejudge.scoring.judging.golden import TRAPS, GoldenCase, GoldenQuestion, Trap
from sidejudge.scoring.questions.registry import question_of_json
from sidejudge.scoring.trace.span import JsonRecord


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
