"""What a judge is shown, for one golden story a rubric: ``python -m tests.scoring.judging.rendered`` writes it anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from sidejudge.integrations.cases.lines import read_case
from sidejudge.scoring.judging.request import can_judge, requests
from sidejudge.scoring.questions.question import NoAnswer, PendingMetrics
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.rubric import all_criteria

STORIES = Path(__file__).parents[2] / "golden" / "cases"
FOLDER = Path(__file__).parent / "rendered"
CONTEXT = 100_000
NOBODY = NoAnswer("nobody answers")


def rounds(case, rubric):
    """The requests of each round, as if no question were answered by other means."""
    metrics = [criterion.metric for criterion in all_criteria(rubric)]
    evaluation = PendingMetrics({metric.id: metric.start(case) for metric in metrics})
    while requested := evaluation.questions:
        yield [question for question in requested if can_judge(question)]
        evaluation.give(dict.fromkeys(requested, NOBODY))


def reported(case, rubric):
    return sum(len(requested) for requested in rounds(case, rubric))


def cases(rubric) -> Iterator[tuple[str, object]]:
    for path in sorted((STORIES / rubric).glob("*.yaml")):
        story = yaml.safe_load(path.read_text(encoding="utf-8"))
        yield path.stem, read_case(json.dumps({"case_id": path.stem, **story["case"]}), 1)


def rendered(rubric):
    """The requests of the story that asks a judge most; None for a rubric that asks none."""
    name, case = max(cases(rubric.id), key=lambda each: reported(each[1], rubric))
    requested = [round_ for round_ in rounds(case, rubric) if round_]
    if not requested:
        return None
    parts = [f"What a judge is shown of the story {rubric.id}/{name}. Written by tests/scoring/judging/rendered.py."]
    for number, questions in enumerate(requested, 1):
        made, _ = requests(case, questions, context_tokens=CONTEXT)
        for request in made:
            parts.append(
                f"===== round {number}, {len(request.questions)} question(s), about {request.prompt_tokens} tokens, "
                f"prompt version {request.prompt_version}"
            )
            parts += [f"===== {message['role']}\n{message['content']}" for message in request.messages]
            parts.append(f"===== schema {request.schema_name}\n{json.dumps(request.schema, indent=1)}")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write all files anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for rubric in RUBRICS.values():
        if (text := rendered(rubric)) is not None:
            (FOLDER / f"{rubric.id}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
