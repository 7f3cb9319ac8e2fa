"""What every type of question must keep to before a judge; new ones are found by themselves."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import sys

import jsonschema
import pytest

import sidejudge.scoring
from sidejudge.scoring.evaluators.embedding import EMBEDDING_ONLY
from sidejudge.scoring.judging.form import prompt
from sidejudge.scoring.judging.forms import BY_METRIC, FORMS, TEMPLATE, form_of
from sidejudge.scoring.judging.parts import PARTS
from sidejudge.scoring.questions.kinds import AskDeclared
from sidejudge.scoring.questions.question import Question

for _found in pkgutil.walk_packages(sidejudge.scoring.__path__, "sidejudge.scoring."):
    importlib.import_module(_found.name)


def subclasses(kind):
    for each in kind.__subclasses__():
        # A dataclass with slots is made twice; the module holds the one that counts.
        if getattr(sys.modules[each.__module__], each.__name__, None) is each:
            yield each
            yield from subclasses(each)


TYPES = sorted(
    {each for each in subclasses(Question) if each.__module__.startswith("sidejudge.scoring.")},
    key=lambda t: t.__name__,
)
ALL = {
    **{form.metric: form for form in FORMS.values()},
    **{form.metric: form for forms in BY_METRIC.values() for form in forms.values()},
    TEMPLATE.metric: TEMPLATE,
}
EVERY = pytest.mark.parametrize("form", ALL.values(), ids=ALL)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_a_type_of_question_has_a_form_or_is_declared_to_be_for_embeddings_only(kind):
    # A declared question brings its form along.
    own = kind in FORMS or kind in BY_METRIC or kind is AskDeclared
    judged = own or (not dataclasses.fields(kind) and form_of(kind()) is not None)
    assert judged != (kind in EMBEDDING_ONLY), (
        f"{kind.__name__} needs a line in scoring/judging/forms.py and a file in scoring/prompts, "
        "or a place in EMBEDDING_ONLY"
    )


def test_metrics_are_called_by_different_names():
    forms = [*FORMS.values(), *(form for forms in BY_METRIC.values() for form in forms.values()), TEMPLATE]
    assert len(ALL) == len(forms)


@EVERY
def test_a_form_shows_parts_that_there_are_and_names_files_that_there_are(form):
    assert set(form.parts) <= set(PARTS)
    assert all(prompt(name).endswith("\n") for name in form.files)


@EVERY
def test_a_form_asks_for_a_reason_and_its_schema_is_one(form):
    jsonschema.Draft202012Validator.check_schema({"type": "object", "properties": form.properties})
    assert {"reason", "reasoning", "rationale"} & set(form.properties)


@EVERY
@pytest.mark.parametrize("keys", [{}, {"score": None}, {"reason": "x"}], ids=["nothing", "null", "only a reason"])
def test_a_reader_refuses_what_is_not_an_answer_with_nothing_but_a_value_error(form, keys):
    found = {**dict.fromkeys(form.properties), **keys}
    with pytest.raises(ValueError, match=r"\w"):
        form.read(found, Question())


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_a_question_says_how_it_is_answered(kind):
    assert "nswered by" in inspect.getdoc(kind)
