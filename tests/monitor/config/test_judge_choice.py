"""Judge choice: a rubric and a metric may name a judge of their own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from sidejudge.integrations.provider.attempt import JudgeObserver
from sidejudge.monitor.config import ConfigError, resolve
from sidejudge.monitor.config.judge_choice import judge_choice, judge_sections, judges_named
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.evaluate.build import judge_settings
from sidejudge.monitor.evaluate.judge.panel import JudgePanel

SMALL, STRONG = "openai/gpt-4.1-nano-2025-04-14", "openai/gpt-4.1-2025-04-14"
JUDGES = {
    "judge": {"model": SMALL, "api_base": "http://here/v1", "api_key": "sk-1", "timeout": "7s", "panel": [STRONG]},
    "judges": {"strong": {"model": STRONG, "retries": 1}, "far": {"model": "anthropic/claude-20250101"}},
}


def config(tmp_path, rubrics, evaluators=JUDGES):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({"evaluators": evaluators, "rubrics": rubrics}))
    return resolve(path, {}).config


def test_a_metric_has_its_own_judge_else_that_of_its_rubric_else_the_default_one(tmp_path):
    asked = {"id": "polite", "ask": "Is it polite?", "answer": "boolean", "weight": 1}
    choice = judge_choice(
        config(
            tmp_path,
            {
                "quality": {"judge": "strong", "metric_judges": {"completeness": "default"}},
                "mine": {"extends": "quality"},
                "own": {"metrics": [asked], "metric_judges": {"polite": "far"}},
            },
        )
    )
    assert choice.of("quality", "answer_quality") == choice.of("mine", "answer_quality") == ("strong",)
    assert choice.of("quality", "completeness") == choice.of("mine", "completeness") == ("default",)
    assert choice.of("own", "polite") == ("far",)
    assert choice.of("qa", "anything") == ("default",)


def test_what_a_judge_leaves_out_is_that_of_the_default_one_but_not_another_providers_key(tmp_path):
    sections = judge_sections(config(tmp_path, {"agent": {"judge_config": {"model": "gpt-4o-2024-08-06"}}}))
    assert next(iter(sections)) == "default"
    strong, far, agent = (sections[name] for name in ("strong", "far", "openai/gpt-4o-2024-08-06"))
    assert (strong.model, strong.retries, strong.timeout.seconds, strong.panel) == (STRONG, 1, 7.0, ())
    assert [each.api_base for each in (strong, far, agent)] == ["http://here/v1", None, "http://here/v1"]
    assert [each.api_key is None for each in (strong, far, agent)] == [False, True, False]


def test_a_judge_at_the_providers_own_address_is_not_sent_the_key_of_another_one(tmp_path):
    own = {"model": STRONG, "api_base": None}
    sections = judge_sections(config(tmp_path, {}, {**JUDGES, "judges": {"own": own}}))
    assert (sections["own"].api_base, sections["own"].api_key) == (None, None)


def test_the_judges_of_a_rubric_have_the_names_that_its_verdicts_state(tmp_path):
    changes = {"quality": {"judge": ["default", "strong"]}, "text": {"metric_judges": {"summary_score": "far"}}}
    found = config(tmp_path, changes)
    named = judges_named(found, configured(found).values())
    settings = judge_settings(found)
    default, strong, far = (
        JudgePanel([SimpleNamespace(model=model) for model in each.models], each.section, JudgeObserver()).name
        for each in (settings, settings.others["strong"], settings.others["far"])
    )
    assert (default, strong) == (f"majority of {SMALL}, {STRONG}", STRONG)
    assert named["quality"] == (default, strong)
    assert set(named["text"]) == {default, far}
    assert named["agent"] == (default,)
    alone = config(tmp_path, {}, {})
    assert judges_named(alone, configured(alone).values())["quality"] == ()


@pytest.mark.parametrize(
    ("rubrics", "evaluators", "cause"),
    [
        ({"quality": {"judge": "storng"}}, JUDGES, "rubrics.quality.judge: evaluators.judges names no judge 'storng'"),
        ({"quality": {"judge": "default"}}, {}, "evaluators.judges names no judge 'default'"),
        ({"quality": {"metric_judges": {"polite": "strong"}}}, JUDGES, "there is no metric 'polite'"),
        ({}, {"judges": JUDGES["judges"]}, "judges are named beside a default one"),
        ({}, {"judge": JUDGES["judge"], "judges": {"default": {"model": STRONG}}}, "give this one another name"),
    ],
)
def test_a_judge_or_a_metric_that_does_not_exist_is_refused(tmp_path, rubrics, evaluators, cause):
    with pytest.raises(ConfigError) as refused:
        config(tmp_path, rubrics, evaluators)
    assert cause in str(refused.value)
