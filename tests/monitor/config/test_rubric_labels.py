"""Labels in the files that a rubric names: what its questions show of them, and what is wrong with a file."""

import json

import pytest

from sidejudge.monitor.config.errors import ConfigError
from sidejudge.monitor.config.load import load
from sidejudge.scoring.questions.teaching import teaches

NAMES = [f"case-{number}" for number in range(200)]
TEACHING = [name for name in NAMES if teaches(name)]
CONFIG = """
rubrics:
  tone:
    labels: {labels: labels.jsonl, cases: cases.jsonl%s}
    metrics: [{id: polite, ask: "Is {{output}} polite?", examples: labels, weight: 1.0}]
routes: [{match: {}, rubrics: [tone]}]
"""


def lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def label(name, *, value=True, **more):
    return {"case_id": name, "rubric": "tone", "metric": "polite", "label": value, "by": "ann", **more}


@pytest.fixture
def folder(tmp_path):
    lines(tmp_path / "cases.jsonl", [{"case_id": name, "output": f"text\u2028of {name}."} for name in NAMES])
    lines(tmp_path / "labels.jsonl", [label(name) for name in NAMES])
    (tmp_path / "sidejudge.yaml").write_text(CONFIG % "")
    return tmp_path


def rubric(folder):
    return load(folder / "sidejudge.yaml", {}).declared["tone"]


def formula(folder):
    return rubric(folder).criteria[0].metric.formula


def test_a_rubric_shows_its_judge_what_people_labelled_and_has_another_version_with_other_labels(folder):
    before = rubric(folder)
    assert before.criteria[0].metric.taught
    assert any(f"of {name}." in formula(folder) for name in TEACHING)
    assert not any(f"of {name}." in formula(folder) for name in NAMES if name not in TEACHING)
    lines(folder / "labels.jsonl", [label(name, value=False) for name in NAMES])
    assert rubric(folder).version != before.version


def test_the_verdict_of_a_label_or_of_a_file_shows_where_the_judge_was_wrong(folder):
    wrong = TEACHING[-1]
    lines(folder / "labels.jsonl", [label(name, verdict=name != wrong) for name in NAMES])
    assert f"of {wrong}." in formula(folder)
    lines(folder / "labels.jsonl", [label(name) for name in NAMES])
    (folder / "sidejudge.yaml").write_text(CONFIG % ", verdicts: verdicts.jsonl")
    for wrong in TEACHING[-3:]:
        rows = [
            {"case_id": name, "rubric": of, "state": "valid", "composite": 1.0, "passed": True,
             "scores": [{"metric": "polite", "status": "scored", "value": float(name != wrong or of == "other")}]}
            for name in NAMES for of in ("tone", "other")
        ]  # fmt: skip
        lines(folder / "verdicts.jsonl", rows)
        assert f"of {wrong}." in formula(folder)


def test_of_several_labels_by_one_person_the_last_counts(folder):
    lines(folder / "labels.jsonl", [label(TEACHING[0]), label(TEACHING[0], value=False)])
    assert '"answer": false' in formula(folder).replace('\\"', '"')


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("labels.jsonl", None, "labels.jsonl: No such file"),
        ("cases.jsonl", '{"case_id": "a", "output": "b"}\n{"case_id": 1}\n', "cases.jsonl: line 2: case_id: "),
        ("labels.jsonl", '{"case_id": "a"}\n', "labels.jsonl: line 1: label: is missing"),
        ("labels.jsonl", "", "no label of labels.jsonl is about tone.polite"),
        ("labels.jsonl", json.dumps(label("stranger")), "no label of labels.jsonl is about tone.polite"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_named_with_the_line(folder, file, text, found):
    (folder / file).unlink() if text is None else (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=found) as refused:
        load(folder / "sidejudge.yaml", {})
    assert "rubrics.tone.metrics[0].examples" in str(refused.value)


def test_labels_that_no_question_shows_are_refused(folder):
    (folder / "sidejudge.yaml").write_text((CONFIG % "").replace("examples: labels, ", ""))
    with pytest.raises(ConfigError, match="no metric has examples: labels"):
        load(folder / "sidejudge.yaml", {})
