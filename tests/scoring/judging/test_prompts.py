"""Prompt files: the seeds' words as they are, levels as they are declared, and versions that anybody can recompute."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from sidejudge.scoring.judging.form import prompt, version
from sidejudge.scoring.judging.forms import BY_METRIC, FORMS, TEMPLATE
from sidejudge.scoring.judging.layout import files, system
from sidejudge.scoring.judging.request import prompt_version
from sidejudge.scoring.questions.kinds import BorneOut, CitesTranscript, GradeAnswer, GradeQuality
from sidejudge.scoring.rubrics.dimensions import LEVELS

PROMPTS = Path(__file__).parents[3] / "scoring" / "prompts"
CARRIED = Path(__file__).parents[2] / "data" / "seeds"
ALL = (*FORMS.values(), *(form for forms in BY_METRIC.values() for form in forms.values()), TEMPLATE)


def block_after(text, heading):
    """What stands in the first code block after a heading."""
    return re.search(r"```\w*\n(.*?)```", text[text.index(heading) :], re.DOTALL)[1]


def seed(shared, number):
    return next((shared / "seeds").glob(f"{number}_*")).read_text(encoding="utf-8")


def test_the_system_prompt_is_seed_000s_word_for_word(shared):
    assert prompt("seed_000_system") == block_after(seed(shared, "000"), "# Judge System Prompt")


def test_the_evaluators_template_is_seed_002s_word_for_word(shared):
    assert prompt("seed_002_evaluator") == block_after(seed(shared, "002"), "### 2.1 Evaluator prompt template (exact)")


def test_both_are_the_copies_that_are_carried_with_the_tests():
    assert prompt("seed_000_system") == (CARRIED / "000_judge_system_prompt.txt").read_text(encoding="utf-8")
    assert prompt("seed_002_evaluator") == (CARRIED / "002_evaluator_template.txt").read_text(encoding="utf-8")


def test_levels_of_quality_are_seed_003s(shared):
    rows = re.findall(r"^\| \*\*([0-9.]+)\*\* \| ([^|]+) \| ([^|]+) \|$", seed(shared, "003"), re.MULTILINE)
    assert len(rows) == 18
    for value, name, meaning in rows:
        assert f"  {value} {name}: {meaning}\n" in prompt("quality")
    for question in re.findall(r"^\*\*Question:\*\* (.*)$", seed(shared, "003"), re.MULTILINE)[-3:]:
        assert question in " ".join(prompt("quality").split())


def test_levels_of_a_dimension_are_seed_004s(shared):
    reported = seed(shared, "004")
    for name in ("completeness", "citation_accuracy", "source_quality", "tool_efficiency"):
        text = prompt(f"dimensions/{name}")
        levels = re.findall(r"^(?:Excellent|Good|Acceptable|Poor|Failed) \(.*$", text, re.MULTILINE)
        assert len(levels) == len(LEVELS)
        assert "\n".join(levels) in reported
        meaning = re.search(r"^\w+( \w+)? measures whether [\w ]+", text, re.MULTILINE)[0]
        assert meaning in reported


def test_every_file_is_used_and_every_file_that_is_named_exists():
    named = {name for form in ALL for name in form.files}
    found = {path.relative_to(PROMPTS).with_suffix("").as_posix() for path in PROMPTS.rglob("*.md")} - {
        "README",
        "again",
    }
    assert named == found


def test_a_version_is_the_hash_of_the_files_one_after_the_other():
    names = ("seed_000_system", "data", "answers", "seed_000_answers", "has_evidence")
    content = b"".join((PROMPTS / f"{name}.md").read_bytes() for name in names)
    assert prompt_version(CitesTranscript("x")) == hashlib.sha256(content).hexdigest()
    alone = (PROMPTS / "data.md").read_bytes() + (PROMPTS / "seed_002_evaluator.md").read_bytes()
    assert prompt_version(GradeAnswer()) == hashlib.sha256(alone).hexdigest()


def test_each_question_has_a_version_of_its_own():
    assert len({form.version for form in ALL}) == len(ALL)
    assert prompt_version(CitesTranscript("x")) == prompt_version(CitesTranscript("y")) != prompt_version(BorneOut("x"))
    assert version(("data",)) != version(("data", "answers"))


def test_a_metric_is_named_in_its_file_as_the_answer_must_name_it():
    for form in ALL:
        if form is not TEMPLATE:
            assert re.match(rf"{form.metric}( \(five fields\))?\n", prompt(form.prompt[-1])), form.metric
            for key in form.properties:
                cited = key in ("expected_outcome_reference", "model_output_observed", "reason")
                assert f'"{key}"' in system(form.files) if cited else f'"{key}"' in prompt(form.prompt[-1]), form.metric


def test_a_judge_explains_before_it_decides_but_for_the_forms_that_seeds_000_and_002_state():
    for form in ALL:
        if form is not TEMPLATE and "seed_000_answers" not in form.files:
            first = re.search(r'^"(\w+)":', prompt(form.prompt[-1]), re.MULTILINE)[1]
            assert first in ("reason", "reasoning"), form.metric


def test_instructions_begin_with_seed_000_where_one_of_its_questions_is_asked():
    assert system(files([FORMS[CitesTranscript], FORMS[GradeQuality]])).startswith(prompt("seed_000_system"))
    assert prompt("seed_000_system") not in system(files([FORMS[GradeQuality]]))


def test_the_readme_shows_the_order_of_the_files():
    readme = (PROMPTS / "README.md").read_text(encoding="utf-8")
    assert f"cat {' '.join(f'{name}.md' for name in FORMS[CitesTranscript].files)} | sha256sum" in readme
    assert f"cat {' '.join(f'{name}.md' for name in TEMPLATE.files)} | sha256sum" in readme
