"""Stories of cases: a case and the verdict that it must get, in one file each.

A story names its rubric by its folder. ``case`` has the fields of the case format; ``judge``, where given, is what a
judge answers (by what it is asked, where a rubric asks more than one thing; ``claims`` where it takes an output apart);
``verdict`` is what must stand in the verdict: numbers to three decimals, ``reason`` as a part of it, ``scores`` by
metric (a number, or the status of a metric without one).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from sidejudge.integrations.cases.lines import read_case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions import kinds
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS

FOLDER = Path(__file__).parent / "cases"
STORIES = sorted(FOLDER.glob("*/*.yaml"))


def answerer(judge):
    def answer(case, question):
        value = None if judge is None else judged(judge, question)
        return lexical.answer(case, question) if value is None else Answer(value=value, method=Method.JUDGE)

    return answer


def judged(judge, question):
    match question:
        case kinds.GradeAnswer() | kinds.GradeQuality():
            return judge
        case kinds.GradeAgent(metric=name) | kinds.GradeDimension(dimension=name):
            return judge.get(name)
        case kinds.VerifyClaims() if "claims" in judge:
            return {"claims": judge["claims"]}
        case kinds.HowFluent():
            return judge.get("fluency")
        case kinds.SentenceSimilarity(pairs):
            of_pairs = [judge.get("similar_to", {}).get(other) for _, other in pairs]
            return judge.get("similarities", of_pairs if None not in of_pairs else None)
        case kinds.OutcomeDrift():
            return judge.get("outcomes")
        case kinds.KeepsFact(fact):
            return judge.get("facts", {}).get(fact)
    return benchmarked(judge, question)


def benchmarked(judge, question):
    match question:
        case kinds.Supported(claim):
            return judge.get("supported", {}).get(claim)
        case kinds.SameFact(expected, found):
            return judge.get("same", {}).get(expected, {}).get(found)
        case kinds.StatedClaims(statements):
            return judge.get("claims", {}).get(" ".join(statements))
        case kinds.PiecesUsed() | kinds.PiecesNeeded():
            return judge.get("used" if isinstance(question, kinds.PiecesUsed) else "needed")
        case kinds.SoundReasoning():
            return judge.get("reasoning")
        case kinds.FollowsInstructions():
            return judge.get("instructions")
        case kinds.ReachedGoal():
            return judge.get("achieved")
        case kinds.FindErrors():
            return {"findings": judge["findings"]}
    return None


@pytest.mark.parametrize("path", STORIES, ids=[f"{path.parent.name}/{path.stem}" for path in STORIES])
def test_the_story_ends_as_it_is_told(path):
    story = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(story) <= {"story", "case", "judge", "verdict"}
    case = read_case(json.dumps({"case_id": path.stem, **story["case"]}), 1)
    rubric = RUBRICS[path.parent.name]
    found = score(case, rubric, answer=answerer(story.get("judge")), created_at="2026-01-01T00:00:00Z").to_json()
    expected = story["verdict"]
    scores = {line["metric"]: line["status"] if line["value"] is None else line["value"] for line in found["scores"]}
    for metric, value in expected.pop("scores", {}).items():
        assert scores[metric] == (value if isinstance(value, str) else pytest.approx(value, abs=5e-4)), metric
    assert expected.pop("reason", "") in found["reason"]
    assert expected.pop("composite", found["composite"]) == (
        None if found["composite"] is None else pytest.approx(found["composite"], abs=5e-4)
    )
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("rubric", RUBRICS)
def test_every_rubric_has_stories_that_pass_and_that_do_not(rubric):
    reported = [
        yaml.safe_load(path.read_text(encoding="utf-8"))["verdict"]["passed"]
        for path in STORIES
        if path.parent.name == rubric
    ]
    few = f"tests/golden/cases/{rubric} has {len(reported)} stories of 4, some of which pass and some do not"
    assert len(reported) >= 4, few
    assert True in reported, few
    assert False in reported, few
