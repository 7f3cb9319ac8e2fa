"""What an evaluator leaves behind is told from what an application does."""

from __future__ import annotations

import pytest

from sidejudge.scoring.trace.loop_guard import evaluator_traffic, is_own


@pytest.mark.parametrize(
    "marks",
    [
        {"service": "sidejudge"},
        {"service": "renamed-by-a-collector", "scope": "sidejudge.judge"},
        {"tags": ("nightly", "sidejudge")},
    ],
)
def test_each_mark_alone_tells_what_is_our_own(marks):
    assert is_own(**marks)
    # The spans of a foreign scope never come to be a case.
    assert "scope" in marks or evaluator_traffic(marks.get("service"), None, tags=marks.get("tags", ()))


@pytest.mark.parametrize(
    "environment", ["langfuse", "langfuse-llm-as-a-judge", "llm-as-a-judge", "code-eval", "sdk-experiment"]
)
def test_evaluators_of_langfuse_and_experiments_are_told_by_their_environment(environment):
    assert "evaluators run" in (evaluator_traffic("shop", environment) or "")


def test_an_application_is_not_taken_for_an_evaluator():
    assert not is_own(service="my-sidejudge-app", scope="sidejudge.judges", tags=("sidejudge-demo",))
    assert evaluator_traffic("my-langfuse-app", "production", tags=("langfuse",)) is None
    assert evaluator_traffic("shop", "sidejudge") is None, "somebody may have named an environment so"
    assert evaluator_traffic(None, None) is None
    assert not is_own()
