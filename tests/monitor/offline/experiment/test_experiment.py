"""With Langfuse's own SDK as it is installed, over HTTP: experiments, guards, and what the SDK loses of scores."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time

import pytest
import yaml
from click.testing import CliRunner

from sidejudge.integrations.langfuse.client import Access
from sidejudge.langfuse import GuardError, evaluators, guard, run_evaluators
from sidejudge.monitor.cli import main
from sidejudge.monitor.offline.experiment.dataset_run import UnfitSdkError, check_sdk
from sidejudge.monitor.offline.experiment.evaluators import RunAggregate
from sidejudge.monitor.offline.experiment.inline import fields_of
from sidejudge.scoring.rubrics import RUBRICS
from tests.fakes.langfuse import datasets, otel_requests
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import Observations
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.fakes.openai import Provider, page, too_many
from tests.needs import LANGFUSE_SDK, LITELLM
from tests.waiting import until

pytestmark = LANGFUSE_SDK.mark
RULES = "rubrics: {short: {metrics: [{id: brief, check: {length: {max: 10}}}]}}"


@pytest.fixture(scope="module")
def fake():
    with FakeLangfuse(Mode.NEW, parts=[Observations.part, otel_requests.part, datasets.part]) as server:
        datasets.datasets_of(server)["capitals"] = [
            datasets.item("Paris", id="i1", input="France"), datasets.item("Rome", id="i2", input="Italy"),
            datasets.item("Bern", id="i3", input="Switzerland"),
        ]  # fmt: skip
        yield server


@pytest.fixture(scope="module")
def sdk(fake):
    from langfuse import Langfuse  # noqa: PLC0415  # skipped where it is not installed
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # comes with it

    made = Langfuse(
        public_key=PUBLIC_KEY, secret_key=SECRET_KEY, base_url=fake.base_url, tracer_provider=TracerProvider(),
        timeout=2,
    )  # fmt: skip
    yield made
    fake.standing_fault = None
    made.shutdown()


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(RULES)
    return path


def answer(*, item, **_):
    if item.input == "Switzerland":
        raise LookupError("no such place")
    return {"output": "Paris" if item.input == "France" else "It is certainly Rome", "tools_used": []}


def test_a_rubric_judges_an_experiment_and_the_run_has_bounds(sdk, fake, rules):
    result = sdk.get_dataset("capitals").run_experiment(
        name="release", task=answer, evaluators=evaluators("short", config=rules),
        run_evaluators=run_evaluators("short", config=rules),
    )  # fmt: skip
    found = {each.item.input: {e.name: e for e in each.evaluations} for each in result.item_results}
    assert {place: (e["short_pass"].value, sorted(e)) for place, e in found.items()} == {
        "France": (1.0, ["short_brief", "short_pass", "short_score", "short_state"]),
        "Italy": (0.0, ["short_brief", "short_pass", "short_score", "short_state"]),
    }
    assert found["France"]["short_pass"].data_type == "BOOLEAN"
    (rate,) = [each for each in result.run_evaluations if each.name == "short_pass_rate"]
    assert (rate.value, rate.metadata["judged"]) == (0.5, 2)
    assert 0 < rate.metadata["lower"] < 0.5 < rate.metadata["upper"] < 1
    sdk.flush()
    stored = {(row["name"], row["value"]) for row in fake.scores.stored()}
    assert stored >= {("short_pass", True), ("short_pass", False), ("short_pass_rate", 0.5)}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["plain", "async"])
def test_many_items_at_a_time_with_one_task_in_six_that_fails(sdk, fake, rules, asynchronous):
    name = f"many-{asynchronous}"
    datasets.datasets_of(fake)[name] = [
        datasets.item("x", id=f"{name}-{number}", input=f"{number}") for number in range(30)
    ]

    def plain(*, item, **_):
        if int(item.input) % 6 == 0:
            raise RuntimeError("the agent is down")
        return "short" if int(item.input) % 2 else "far too long"

    async def later(*, item, **_):
        await asyncio.sleep(0.01)
        return plain(item=item)

    result = sdk.get_dataset(name).run_experiment(
        name=name, task=later if asynchronous else plain, max_concurrency=10,
        evaluators=evaluators("short", config=rules), run_evaluators=run_evaluators("short", config=rules),
    )  # fmt: skip
    passed = {
        each.item.input: evaluation.value
        for each in result.item_results for evaluation in each.evaluations if evaluation.name == "short_pass"
    }  # fmt: skip
    assert passed == {str(n): float(n % 2) for n in range(30) if n % 6}
    (rate,) = [each for each in result.run_evaluations if each.name == "short_pass_rate"]
    assert (rate.value, rate.metadata["judged"]) == (0.6, 25)


@pytest.fixture
def tested(fake, tmp_path, monkeypatch):
    """Calls ``test`` with an agent that gives one answer on Italy and Paris elsewhere."""
    path = tmp_path / "sidejudge.yaml"
    keys = f"base_url: '{fake.base_url}', public_key: {PUBLIC_KEY}, secret_key: {SECRET_KEY}"
    path.write_text(f"sinks: {{langfuse: {{{keys}}}}}\n{RULES}\n")
    monkeypatch.syspath_prepend(tmp_path)

    def call(name, italy, *arguments):
        bot = f"def ask(country):\n    return 'Paris' if country != 'Italy' else {italy!r}\n"
        (tmp_path / f"{name}.py").write_text(bot)
        given = ["--agent", f"python:{name}:ask", "--rubric", "short", "--config", str(path), "--langfuse-dataset"]
        return CliRunner().invoke(main, ["test", *given, *arguments])

    return call


def test_the_command_runs_an_agent_over_a_dataset_and_prints_a_link(fake, tested):
    done, missing, both = (
        tested("bot_of_experiment", "x" * 20, *more) for more in (["capitals"], ["nowhere"], ["capitals", "set.yaml"])
    )
    assert done.exit_code == 1, done.stderr
    assert "3 items of capitals" in done.stdout
    assert f"{fake.base_url}/project/proj-test/experiments/results?baseline=" in done.stdout
    assert next(line.split() for line in done.stdout.splitlines() if "short" in line)[:4] == ["short", "2", "1", "0"]
    assert "not in Langfuse" not in done.stderr
    assert (missing.exit_code, both.exit_code) == (2, 2)
    assert "Dataset not found" in missing.stderr


def test_a_rubric_that_is_named_twice_judges_an_item_once(tested):
    done = tested("capital_bot", "Paris", "capitals", "--rubric", "short")
    assert done.exit_code == 0, done.stderr
    assert next(line.split() for line in done.stdout.splitlines() if "short" in line)[:4] == ["short", "3", "0", "0"]


@pytest.mark.parametrize(
    ("fault", "stated"),
    [
        ("forgets", "scores are not in Langfuse, which took them"),
        ("refuses", "scores are not in Langfuse, which took them"),
        ("hides", "whether the scores are in Langfuse is not known: "),
    ],
)
def test_scores_of_a_run_that_are_not_seen_to_arrive_are_a_failure(fake, tested, monkeypatch, fault, stated):
    monkeypatch.setattr("sidejudge.monitor.offline.experiment.dataset_run.ARRIVES_S", 2.0)
    fake.standing_fault = {
        "forgets": faults.only("POST", "/scores", faults.forgets(fake)),
        "refuses": faults.only("POST", "/scores", faults.error(400, "Invalid request data")),
        "hides": faults.only("GET", "/v3/scores", faults.error(403, "Forbidden")),
    }[fault]
    try:
        done = tested("short_bot", "Paris", "capitals")
    finally:
        fake.standing_fault = None
    assert (done.exit_code, stated in done.stderr) == (1, True), done.stderr
    assert next(line.split() for line in done.stdout.splitlines() if "short" in line)[:4] == ["short", "3", "0", "0"]


def test_a_guard_raises_replaces_or_passes(rules, caplog):
    asked = []

    @guard("short", config=rules)
    def long(question):
        return question * 5

    @guard("short", config=rules, on_fail=lambda verdict, output: asked.append((verdict.passed, output)) or "short")
    async def replaced(question):
        return {"output": question * 5}

    assert long("ab") == "ab" * 5
    with pytest.raises(GuardError, match="short: brief") as refused:
        long("abc")
    assert refused.value.verdict.passed is False
    assert asyncio.run(replaced("abc")) == "short"
    assert asked == [(False, {"output": "abcabcabcabcabc"})]

    @guard("short", config=rules)
    def nothing(question):
        return None

    with caplog.at_level(logging.WARNING, "sidejudge.guard"):
        assert nothing("?") is None
    assert "was not judged and passes" in caplog.text
    with pytest.raises(ValueError, match="there is no rubric 'nope'"):
        guard("nope", config=rules)


@LITELLM.mark
def test_a_guard_whose_judge_is_away_passes_at_once_and_asks_nothing_later(tmp_path):
    judge = {"model": "openai/gpt-4.1-mini-2025-04-14", "api_key": "sk"}
    with Provider(too_many("120")) as provider:
        (tmp_path / "c.yaml").write_text(yaml.safe_dump({"evaluators": {"judge": {**judge, "api_base": provider.url}}}))

        def answers(question):
            return f"The answer to {question} is that you get it."

        patient, hurried = (guard("answer", config=tmp_path / "c.yaml", timeout_s=s)(answers) for s in (60, 0.5))
        began = time.monotonic()
        assert [patient(f"{number}?") for number in range(3)] == [answers(f"{number}?") for number in range(3)]
        assert time.monotonic() - began < 30, "it waited for the judge"
        provider.standing = page(503)
        hurried("3?")
        asked = len(provider.seen)
        time.sleep(3)
        assert len(provider.seen) <= asked + 1, "what nobody waits for is not paid"


def test_a_guard_scores_the_current_trace_where_it_is_asked_to(sdk, fake, rules):
    @guard("short", config=rules, score_trace=True)
    def brief(question):
        return question

    with sdk.start_as_current_observation(name="guarded") as span:
        assert brief("yes") == "yes"
        trace_id = span.trace_id
    sdk.flush()
    stored = {row["name"]: row["value"] for row in fake.scores.stored() if row["traceId"] == trace_id}
    assert stored == {"short_pass": True, "short_score": 1.0, "short_brief": True}


async def test_the_sdk_loses_scores_while_the_server_is_away_which_is_why_a_monitor_delivers_them_itself(sdk, fake):
    """As long as this holds, a monitor delivers by its own client; docs/how-to/langfuse-sdk.md gives the reason."""
    fake.standing_fault = lambda request: faults.store_away()(request) if request.path == "/scores" else None
    sdk.create_score(name="lost", value=1, trace_id="a" * 32, score_id="lost-1")
    before = time.monotonic()
    await asyncio.to_thread(sdk.flush)
    assert time.monotonic() - before < 20, "it gave up, and flush says nothing"
    fake.standing_fault = None
    sdk.create_score(name="kept", value=1, trace_id="a" * 32, score_id="kept-1")
    await asyncio.to_thread(sdk.flush)
    await until(lambda: "kept-1" in {row["id"] for row in fake.scores.stored()})
    assert "lost-1" not in {row["id"] for row in fake.scores.stored()}


def test_the_sdk_is_imported_when_it_is_used():
    code = (
        "import sys, sidejudge.langfuse; sidejudge.langfuse.evaluators('run_health'); print('langfuse' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_is_judged_is_the_output_and_not_its_wrapping():
    scenario = {"tools_should_include": ["atlas"]}
    fields = fields_of("q", {"output": {"a": 1}, "tools_used": ["atlas"]}, "want", {"task": "qa", "scenario": scenario})
    assert (fields["model_output"], fields["tools_used"], fields["task"]) == ({"a": 1}, ["atlas"], "qa")
    assert (fields["expected_outcome"], fields["scenario"]) == ("want", scenario)
    assert fields_of("q", {"a": 1}, None, None)["model_output"] == {"a": 1}


@pytest.mark.parametrize(
    ("mode", "installed", "fits"),
    [(Mode.DUAL, "5.0.4", False), (Mode.NEW, "5.0.4", True), (Mode.DUAL, "4.18.0", True), (Mode.NEW, "4.18.0", True)],
)
def test_an_sdk_whose_scores_the_server_does_not_take_is_named_before_the_run(mode, installed, fits):
    with FakeLangfuse(mode) as server:
        access = Access(base_url=server.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        if fits:
            check_sdk(access, installed)
        else:
            with pytest.raises(UnfitSdkError, match=r"Langfuse 4\.16\.0 takes no scores of its SDK 5\.0\.4"):
                check_sdk(access, installed)


@pytest.mark.parametrize("values", [(1.0, 0.5), (0.0, 1.0), (1.0, 1.0)])
def test_the_bounds_of_a_mean_lie_where_a_composite_can_be(values):
    rubric = RUBRICS["qa"]
    (found,) = [each for each in RunAggregate(rubric)._aggregates((), values, len(values), 0) if each.name == "qa_mean"]
    assert 0.0 <= found.metadata["lower"] <= found.value <= found.metadata["upper"] <= rubric.scale
