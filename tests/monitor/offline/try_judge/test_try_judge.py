"""``sidejudge try-judge`` against judges on a socket: each fault of a judge is found, and a good one is not blamed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest

from sidejudge.integrations.judge.client import JudgeClient, JudgeModel, TokenPrice
from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.cli.try_judge import labelled
from sidejudge.monitor.config import load
from sidejudge.monitor.config.evaluators import JudgeSection
from sidejudge.monitor.evaluate.judge.panel import JudgeSettings
from sidejudge.monitor.offline.score.request import Transient
from sidejudge.monitor.offline.try_judge.run import golden_set, judges, try_judge
from sidejudge.scoring.judging.forms import BY_METRIC, FORMS
from sidejudge.scoring.judging.golden import TRAPS
from sidejudge.scoring.questions.kinds import AskDeclared, ChooseSteps, FindErrors, GradeAnswer, ReachedGoal
from sidejudge.scoring.result.result import Unavailable
from tests.fakes import openai as fake
from tests.fakes.golden_judge import CONTEXT, known, knows, written
from tests.forked import sidejudge
from tests.needs import LITELLM

CONFIG = """
evaluators:
  judge: {{model: openai/judge-2026-01-01, api_base: "{url}", api_key: sk-test, retries: 0, concurrency: 32,
           price: {{input_usd_per_million: 1.0, output_usd_per_million: 2.0}}}}
"""
ALL = golden_set()


def of_metrics(*names):
    kept = (replace(each, questions=tuple(one for one in each.questions if one.metric in names)) for each in ALL)
    return tuple(each for each in kept if each.questions)


FEW = of_metrics("same_fact", "quality")
"""Enough to find a fault."""
PROMPTS = known(FEW)


def broken():
    """Every second answer is prose, also when it is asked for again."""
    calls = Counter()

    def act(seen):
        calls["n"] += 1
        return fake.states("I think it is fine." if calls["n"] % 2 else written(PROMPTS, seen))(seen)

    return act


def breaks_once():
    """Every answer is prose at first, and right when it is asked for again."""

    def act(seen):
        again = "Your answer before this one was not accepted" in seen.messages[-1]["content"] or seen.raw in before
        before.add(seen.raw)
        return fake.states(written(PROMPTS, seen) if again else "Let me think.")(seen)

    before: set[bytes] = set()
    return act


def unstable():
    """Another answer each time."""
    calls = Counter()

    def act(seen):
        calls[seen.raw] += 1
        return fake.states(written(PROMPTS, seen, lambda _: calls[seen.raw] > 1))(seen)

    return act


@pytest.fixture
def reports():
    """Runs the judges of a configuration in this process."""

    def run(behaviour, cases=FEW, *, repeats=1, timeout_s=120.0, names=("openai/judge",), **settings):
        async def asked():
            library, memory = LiteLLM(), Transient()
            try:
                return [
                    await try_judge(name, each, cases, client=JudgeClient(library), memory=memory, repeats=repeats)
                    for name, each in judges(given).items()
                ]
            finally:
                await library.close()

        with fake.Provider(behaviour) as provider:
            price = TokenPrice(input_usd_per_million=1.0, output_usd_per_million=2.0)
            models = tuple(
                JudgeModel(name=name, api_base=provider.url, api_key="sk-test", timeout_s=timeout_s, price=price)
                for name in names
            )
            own = {"retries": 0, "concurrency": 32, "context_tokens": CONTEXT, **settings}
            given = JudgeSettings(section=JudgeSection(model=names[0]).model_copy(update=own), models=models)
            return asyncio.run(asked()), provider.seen

    return run


def test_the_golden_set_asks_every_kind_of_question_with_and_without_traps():
    questions = [each for case in golden_set() for each in case.questions]
    assert len(questions) >= 120
    plain = [each for each in questions if each.trap is None]
    of_long_runs = {
        ChooseSteps,
        FindErrors,
        ReachedGoal,
    }  # a run that they fit has no place in a set of short questions
    assert {type(each.question) for each in plain} == {*FORMS, *BY_METRIC, GradeAnswer, AskDeclared} - of_long_runs
    metrics = {each.metric for each in plain}
    assert metrics >= {form.metric for forms in BY_METRIC.values() for form in forms.values()}
    assert {each.question.kind for each in plain if isinstance(each.question, AskDeclared)} == {
        "boolean", "scale", "one_of", "number", "findings"
    }  # fmt: skip
    trapped = Counter(each.trap for each in questions if each.trap is not None)
    assert set(trapped) == set(TRAPS)
    assert min(trapped.values()) >= 8  # fewer pairs could not show a bias at the chosen rate of false alarms
    names = {each.name for each in questions}
    assert len(names) == len(questions)
    assert all(each.twin in names for each in questions if each.trap is not None)


@LITELLM.mark
def test_a_good_judge_is_not_blamed(reports):
    ((report,), _) = reports(knows(), ALL)
    assert report.findings == report.wrong == ()
    assert report.accuracy.value == report.answered.value == report.parsed.value == 1.0
    assert report.same == Unavailable("nothing was answered twice")
    assert report.usd_per_case > 0
    assert report.latency_s[1] > 0


@LITELLM.mark
def test_two_configurations_are_compared_on_the_examples_of_a_ready_rubric(tmp_path):
    pytest.importorskip("cel_expr_python")
    (tmp_path / "plain.yaml").write_text("sampling: {rate: 1.0}\n")
    examples = labelled(load(tmp_path / "plain.yaml", {}), ["toxicity"])
    with (
        fake.Provider(knows(lambda _: True, cases=examples)) as wrong,
        fake.Provider(knows(cases=examples)) as right,
    ):
        for name, provider in (("a", wrong), ("b", right)):
            (tmp_path / f"{name}.yaml").write_text(CONFIG.format(url=provider.url))
        command = ("calibrate", "--prompts", "a.yaml", "b.yaml", "--rubric", "toxicity")
        found, shown = sidejudge(*command, "--format", "json", cwd=tmp_path), sidejudge(*command, cwd=tmp_path)
    assert (found.returncode, shown.returncode) == (0, 0), found.stderr + shown.stderr
    stated = json.loads(found.stdout)
    (metric,) = stated["metrics"]
    assert (metric["rubric"], metric["metric"], metric["n"]) == ("toxicity", "toxic", len(examples))
    assert (metric["a"], metric["b"], metric["better"]) == (0.0, 1.0, "B")
    assert stated["a"]["cases"] == stated["b"]["cases"] == len(examples)
    assert 0 < stated["b"]["usd"] < 1
    first, second, *_ = shown.stdout.splitlines()
    assert first.startswith("A: a.yaml · ")
    assert second.startswith("B: b.yaml · ")
    assert f"{len(examples)} cases · $" in second


@LITELLM.mark
def test_a_judge_that_believes_authorities_is_found_by_the_command(tmp_path):
    metrics = ("same_fact", "quality", "grade")
    few = of_metrics(*metrics)
    with fake.Provider(knows(lambda each: each.trap == "authority", cases=few)) as provider:
        (tmp_path / "sidejudge.yaml").write_text(CONFIG.format(url=provider.url))
        found = sidejudge("try-judge", "--config", "sidejudge.yaml", "--repeats", "1", "--wrong",
                          *(part for name in metrics for part in ("--metric", name)), cwd=tmp_path)  # fmt: skip
    assert found.returncode == 1, found.stderr
    findings = [line for line in found.stdout.splitlines() if line.startswith("finding")]
    assert len(findings) == 1
    assert findings[0].startswith("finding: biased by authority")
    assert "wrong: return-policy-wrong.1/authority-1 (quality)" in found.stdout
    assert "sk-test" not in found.stdout + found.stderr


@LITELLM.mark
@pytest.mark.parametrize(
    ("behaviour", "more", "finding"),
    [
        (broken, {}, "unreliable"),
        (breaks_once, {}, "breaks the format: 0% of the answers are valid at once"),
        (lambda: knows(lambda _: True, cases=FEW), {}, "wrong: 0% of the answers are right"),
        (lambda: knows(cases=FEW, delay_s=1.6), {"timeout_s": 3.0}, "slow: p95 of a case is "),
        (unstable, {"repeats": 2}, "unstable: 0%"),
        (fake.unauthorised, {}, "unreliable: 0% of the questions have an answer"),
    ],
    ids=["broken", "breaks once", "wrong", "slow", "unstable", "no key"],
)
def test_each_fault_of_a_judge_is_found(reports, behaviour, more, finding):
    ((report,), _) = reports(behaviour(), **more)
    assert any(each.startswith(finding) for each in report.findings), report.findings
    assert "sk-test" not in json.dumps(report.to_json())


@LITELLM.mark
def test_each_model_is_asked_alone_and_each_panel_whole(reports):
    names = ("openai/a", "openai/b", "openai/c")
    found, seen = reports(knows(cases=FEW), names=names)
    assert [each.judge for each in found] == [*names, "panel default"]
    assert found[-1].accuracy.value == 1.0
    assert len(seen) == 6 * found[0].effort.requests


@LITELLM.mark
def test_the_budget_ends_the_questions(reports):
    ((report,), seen) = reports(knows(cases=FEW), budget_usd_per_day=0.02)
    assert 0 < len(seen) < len(FEW)
    assert "unreliable" in report.findings[0]
    assert "over budget" in report.findings[0]
