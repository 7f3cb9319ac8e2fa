"""``sidejudge score`` with embeddings: a real model from disk in this process, or an endpoint on a socket."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.fakes.openai import Provider, body, embeds, error, page, resets, too_many, unauthorised
from tests.forked import sidejudge
from tests.needs import LITELLM, SENTENCE_TRANSFORMERS
from tests.otlp_requests import HIGH, S, request, span, trace

TRANSLATION = {
    "case_id": "translation",
    "task": "translation",
    "model_output": {
        "full_translation": "Kunde Erstattung",
        "sentence_translations": [{"source_id": 1, "source_text": "x", "translated_text": "Kunde Erstattung"}],
        "domain_terms_handled": [],
        "named_entities_handled": [],
    },
    "expected_outcome": {
        "full_translation": "ग्राहक रिफंड",
        "sentence_translations": [{"source_id": 1, "source_text": "x", "translated_text": "ग्राहक रिफंड"}],
        "domain_terms_handled": [],
        "named_entities_handled": [],
    },
}  # fmt: skip
ENTITY = {
    "case_id": "entity",
    "task": "entity",
    "model_output": {"detected_keywords": ["Erstattung", "wetter"], "detected_topics": ["रिफंड"]},
    "expected_outcome": {"detected_keywords": ["refund", "card"], "detected_topics": ["billing"]},
}
ANSWER = {
    "case_id": "answer",
    "input": "Refund verified customer?",
    "model_output": "Customer refunded, account confirmed.",
    "expected_outcome": "Kunde Erstattung, konto geprüft.",
}
HEADLINE = {
    "case_id": "text",
    "task": "text",
    "model_output": {
        "sentiment": [],
        "summary": {"call_purpose": "refund", "highlights": ["Kunde Karte", "sunny monday"], "call_extracted_info": {}},
        "emotion": {},
    },
    "expected_outcome": {
        "sentiment": [],
        "summary": {"call_purpose": "refund", "highlights": ["Customer card"], "call_extracted_info": {}},
        "emotion": {},
    },
}


REMOTE = {"remote": True, "model": "openai/text-embedding-3-small", "api_key": "sk-secret-1"}


def score(
    folder: Path, embedding: dict | None, *cases: dict, rubric: str | None = None, goes_on: bool = False
) -> subprocess.CompletedProcess[str]:
    (folder / "c.yaml").write_text(yaml.safe_dump({"evaluators": {"embedding": embedding}} if embedding else {}))
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    return sidejudge(
        "score", "cases.jsonl", "--out", "v.jsonl", "--config", "c.yaml", *([] if goes_on else ["--overwrite"]),
        *(["--rubric", rubric] if rubric else []), cwd=folder, env={"HF_HUB_OFFLINE": "1"},
    )  # fmt: skip


def verdicts(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "v.jsonl").read_text().splitlines()]


def scores(folder: Path) -> dict[str, dict]:
    return {each["metric"]: each for verdict in verdicts(folder) for each in verdict["scores"]}


@pytest.fixture(scope="module")
def reported(embedding_model, tmp_path_factory):
    """All scores of a run over a case of each task, by metric."""
    folder = tmp_path_factory.mktemp("tasks")
    done = score(folder, {"model": str(embedding_model), "device": "cpu"}, TRANSLATION, ENTITY, HEADLINE)
    assert done.returncode == 0, done.stderr
    return scores(folder)


def test_the_meaning_of_a_translation_is_a_cosine_of_the_model(reported):
    meaning = reported["sentence_meaning_accuracy"]
    assert (meaning["status"], meaning["method"]) == ("scored", "embedding")
    assert meaning["value"] == pytest.approx(1 / 1.04, abs=1e-3)


def test_entities_are_matched_across_languages(reported):
    matched = reported["cross_language_match_rate"]
    # "refund" is found once, as "Erstattung" or as "रिफंड"; nothing stands for "card" and "billing".
    assert (matched["value"], matched["method"]) == (pytest.approx(1 / 3), "embedding")


def test_a_highlight_is_recalled_in_other_words(reported):
    assert (reported["highlight_recall_rate"]["value"], reported["highlight_recall_rate"]["method"]) == (
        1.0,
        "embedding",
    )


def test_relevancy_and_correctness_of_an_answer_are_told_by_the_model(tmp_path, embedding_model):
    done = score(tmp_path, {"model": str(embedding_model), "device": "cpu"}, ANSWER, rubric="benchmarks")
    assert done.returncode == 0, done.stderr
    relevancy, correctness = (scores(tmp_path)[name] for name in ("answer_relevancy", "answer_correctness"))
    assert (relevancy["status"], relevancy["method"]) == ("scored", "embedding")
    assert 0.5 < relevancy["details"]["raw"] < 1
    assert (correctness["status"], correctness["method"], correctness["value"]) == ("scored", "embedding", 1.0)
    assert correctness["details"]["f1"] == 1.0
    assert correctness["details"]["semantic_similarity"] == pytest.approx(1 / 1.04, abs=1e-3)


def test_without_embeddings_none_of_it_has_a_value(tmp_path):
    done = score(tmp_path, None, TRANSLATION)
    assert done.returncode == 0, done.stderr
    assert scores(tmp_path)["sentence_meaning_accuracy"]["status"] == "unavailable"


@SENTENCE_TRANSFORMERS.mark
def test_a_run_whose_model_is_not_there_ends_before_it_says_anything(tmp_path):
    done = score(tmp_path, {"model": str(tmp_path / "nothing")}, TRANSLATION)
    assert done.returncode == 2
    cause, remedy = done.stderr.strip().splitlines()[-2:]
    assert cause.startswith("error: evaluators.embedding.model: there is no folder")
    assert "evaluators.embedding.model" in remedy
    assert not (tmp_path / "v.jsonl").exists()


@SENTENCE_TRANSFORMERS.mark
def test_a_test_run_whose_model_cannot_be_loaded_asks_the_agent_nothing(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("no JSON")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"evaluators": {"embedding": {"model": str(tmp_path / "model")}}}))
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"tests": [{"id": "one", "input": "Hello?"}]}))
    (tmp_path / "agent.py").write_text(
        "import pathlib\ndef ask(said):\n    pathlib.Path('asked').touch()\n    return said\n"
    )
    environ = {k: v for k, v in os.environ.items() if not k.startswith("SIDEJUDGE_")} | {"HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-P", "-m", "sidejudge", "test", "tests.yaml", "--agent", "python:agent:ask"]
    done = subprocess.run(
        [*command, "--config", "c.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=environ | {"PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}{os.pathsep}{tmp_path}"}, timeout=280,
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: evaluators.embedding: the embedding model" in done.stderr
    assert not (tmp_path / "asked").exists()


def meaning_of(text: str) -> tuple[float, ...]:
    """What the fake endpoint knows of meaning: which of three concepts a text names, in any of two languages."""
    concepts = (("kunde", "ग्राहक"), ("erstattung", "रिफंड"), ("wetter", "मौसम"))
    return (*(float(any(word in text.lower() for word in concept)) for concept in concepts), 0.1)


@LITELLM.mark
def test_an_endpoint_answers_the_same_questions(tmp_path):
    with Provider(embeds(meaning_of)) as provider:
        remote = {**REMOTE, "api_base": provider.url}
        done = score(tmp_path, remote, TRANSLATION, {**TRANSLATION, "case_id": "again"})
        assert done.returncode == 0, done.stderr
        assert [v["case_id"] for v in verdicts(tmp_path)] == ["translation", "again"]
        assert scores(tmp_path)["sentence_meaning_accuracy"]["value"] == pytest.approx(1.0)
        assert sorted(text for seen in provider.seen for text in seen.body["input"]) == sorted(
            ["Kunde Erstattung", "ग्राहक रिफंड"]
        )  # each text once


@LITELLM.mark
def test_an_endpoint_that_refuses_leaves_an_error_and_no_number(tmp_path):
    with Provider(error(400, "no such thing")) as provider:
        remote = {**REMOTE, "api_base": provider.url}
        done = score(tmp_path, remote, TRANSLATION)
        assert done.returncode == 1, "not one case could be judged"
        meaning = scores(tmp_path)["sentence_meaning_accuracy"]
        assert (meaning["status"], meaning["value"]) == ("error", None)
        assert "bad request" in meaning["reason"]
        assert verdicts(tmp_path)[0]["state"] == "incomplete"


@LITELLM.mark
def test_an_endpoint_that_refuses_the_key_in_the_middle_of_a_run_costs_no_verdict(tmp_path):
    cases = [
        {**ANSWER, "case_id": f"c{number}", "model_output": f"Kunde {number}.", "expected_outcome": f"ग्राहक {number}."}
        for number in range(30)
    ]
    with Provider(unauthorised()) as provider:
        provider.next.extend([embeds(meaning_of)] * 3)
        remote = {**REMOTE, "api_base": provider.url}
        done = score(tmp_path, remote, *cases, rubric="benchmarks", goes_on=True)
        assert done.returncode == 2
        assert f"error: evaluators.embedding: embeddings of {REMOTE['model']}: authentication failed" in done.stderr
        assert "the run goes on from there" in done.stderr
        assert len(verdicts(tmp_path)) < 30
        assert not any("authentication" in json.dumps(verdict) for verdict in verdicts(tmp_path))
        provider.standing = embeds(meaning_of)
        assert score(tmp_path, remote, *cases, rubric="benchmarks", goes_on=True).returncode == 0
        assert [verdict["case_id"] for verdict in verdicts(tmp_path)] == [case["case_id"] for case in cases]
        assert "sk-secret-1" not in done.stdout + done.stderr + (tmp_path / "v.jsonl").read_text()


def some_cases(count: int) -> list[dict]:
    """Cases with texts of their own, so that nothing is answered from the cache."""
    stated = [(f"c{number}", f"Kunde {number}.", f"ग्राहक {number}.") for number in range(count)]
    return [
        {**ANSWER, "case_id": c, "model_output": output, "expected_outcome": wanted} for c, output, wanted in stated
    ]


def half(seen):
    """An answer with vectors for half of the texts."""
    act = embeds(meaning_of)(seen)
    body = json.loads(act.body)
    return replace(act, body=json.dumps({**body, "data": body["data"][: len(body["data"]) // 2]}).encode())


@LITELLM.mark
@pytest.mark.parametrize(
    "outage",
    [[page(503)] * 5, [body(b"<html>maintenance</html>")] * 5, [half] * 5,
     [too_many("1"), embeds(meaning_of), resets(), embeds(meaning_of)] * 2],
    ids=["overloaded", "a page of a proxy", "half", "in turns"],
)  # fmt: skip
def test_an_outage_that_passes_costs_no_case_a_value(tmp_path, outage):
    cases = some_cases(12)
    with Provider(embeds(meaning_of)) as provider:
        remote = {**REMOTE, "api_base": provider.url, "batch_size": 4}
        assert score(tmp_path, remote, *cases, rubric="benchmarks").returncode == 0
        expected = [{**each, "created_at": ""} for each in verdicts(tmp_path)]
        provider.will(embeds(meaning_of), *outage)
        done = score(tmp_path, remote, *cases, rubric="benchmarks")
        assert done.returncode == 0, done.stderr
        assert not provider.next
        assert [{**each, "created_at": ""} for each in verdicts(tmp_path)] == expected


@LITELLM.mark
def test_an_outage_that_lasts_ends_the_run_which_goes_on_from_there(tmp_path):
    cases = some_cases(30)
    with Provider(page(503)) as provider:
        provider.will(*[embeds(meaning_of)] * 3)
        remote = {**REMOTE, "api_base": provider.url, "max_wait": "1s"}
        done = score(tmp_path, remote, *cases, rubric="benchmarks", goes_on=True)
        assert done.returncode == 2
        assert f"error: evaluators.embedding: embeddings of {REMOTE['model']}: overloaded" in done.stderr
        assert not any("embeddings unavailable" in json.dumps(verdict) for verdict in verdicts(tmp_path))
        provider.standing = embeds(meaning_of)
        assert score(tmp_path, remote, *cases, rubric="benchmarks", goes_on=True).returncode == 0
        assert [verdict["case_id"] for verdict in verdicts(tmp_path)] == [case["case_id"] for case in cases]


@LITELLM.mark
def test_a_case_that_is_above_a_limit_for_as_long_as_is_waited_costs_no_other_its_value(tmp_path):
    cases, works = some_cases(12), embeds(meaning_of)
    with Provider(lambda seen: (too_many("0.1") if b"Kunde 3." in seen.raw else works)(seen)) as provider:
        remote = {**REMOTE, "api_base": provider.url, "max_wait": "2s"}
        done = score(tmp_path, remote, *cases, rubric="benchmarks")
        assert done.returncode == 0, done.stderr
    found = {v["case_id"]: s for v in verdicts(tmp_path) for s in v["scores"] if s["metric"] == "answer_relevancy"}
    assert [name for name, each in found.items() if each["status"] != "scored"] == ["c3"]
    assert found["c3"]["reason"].startswith("embeddings unavailable: ")


def spoken(number: int, name: str = "step", **attributes: str) -> bytes:
    stated = {
        "langfuse.observation.input": f"Refund {number}?", "langfuse.observation.output": f"Kunde Erstattung {number}.",
        "langfuse.trace.metadata.expected_outcome": f"ग्राहक रिफंड {number}.", **attributes,
    }  # fmt: skip
    root = S(trace_id=trace(number, HIGH), span_id=span(1), name=name, attributes=stated)
    looked_up = {"langfuse.observation.type": "tool", "langfuse.observation.output": "paid"}
    tool = S(trace_id=trace(number, HIGH), span_id=span(2), parent_id=span(1), name="look_up", attributes=looked_up)
    return request([root, tool])


def asking(provider: Provider, **embedding) -> dict:
    return {
        "routes": [
            {"match": {"name": "plain"}, "rubrics": ["workflow"], "scenario": "any"}, {"rubrics": ["benchmarks"]},
        ],
        "scenarios": {"any": {"tools_should_exclude": ["delete"]}},
        "evaluators": {"embedding": {**REMOTE, "api_base": provider.url, **embedding}},
    }  # fmt: skip


def waiting(monitor) -> int:
    return int(gauge(monitor, r'sidejudge_queue_items\{queue="embeddings"\}'))


def gauge(monitor, series: str) -> float:
    found = monitor.http.get(monitor.api + "/metrics").text
    return float(re.search(rf"^{series} (\S+)$", found, re.MULTILINE)[1])


@LITELLM.mark
def test_what_needs_embeddings_waits_for_them_over_a_restart_and_nothing_else_does(serving):
    with Provider(page(503)) as provider:
        monitor = serving(**asking(provider))
        for number in range(6):
            monitor.post(spoken(number))
        monitor.until(lambda: waiting(monitor) == 6, "not everything waits")
        monitor.post(spoken(6, "plain"))
        monitor.until(lambda: monitor.outcomes()["ended"]["scored"] == 1, "what needs no embeddings waited")
        assert monitor.get(f"/v1/traces/{trace(5).hex()}")["waits_for"] == "embeddings"
        assert gauge(monitor, "sidejudge_judging_behind_seconds") > 0, "an alert is made of it"
        out = monitor.get("/v1/status")["embeddings"]
        assert (out["outage"].partition(":")[0], out["waiting"]) == (f"embeddings of {out['name']}", 6)
        assert "out of reach" in monitor.http.get(monitor.api + "/").text
        monitor.stop(signal.SIGKILL)
        monitor.start()
        monitor.until(lambda: waiting(monitor) == 6, "not everything waits after the restart")
        provider.standing = embeds(meaning_of)
        outcomes = monitor.settled(6)  # this process has seen no more
        assert waiting(monitor) == 0, outcomes
        found = monitor.get("/v1/status")["embeddings"]
        assert (found["outage"], found["waiting"], found["oldest_since"]) == (None, 0, None)
        assert gauge(monitor, "sidejudge_judging_behind_seconds") == 0
        found = monitor.verdicts()
        assert Counter(each["trace_id"] for each in found) == {trace(number).hex(): 1 for number in range(7)}
        answered = {s["status"] for v in found for s in v["scores"] if s["metric"] == "answer_relevancy"}
        assert answered == {"scored"}
        logged = [line["event"] for line in monitor.logged() if line.get("logger") == "sidejudge.embedding"]
        assert logged == ["embeddings are unreachable; traces that need them wait"] * 2 + ["embeddings answer again"]


@LITELLM.mark
def test_a_conversation_is_judged_once_with_the_turns_that_waited_for_embeddings(serving):
    whole = {"judges": "sessions", "metrics": [{"id": "end", "check": {"contains": "Erstattung 3."}}]}
    with Provider(page(503)) as provider:
        conversation = {"idle": "4s", "late": "1s", "routes": [{"rubrics": ["whole"]}]}
        monitor = serving(**asking(provider), rubrics={"whole": whole}, sessions=conversation)
        for number, name in ((1, "plain"), (2, "plain"), (3, "step")):
            monitor.post(spoken(number, name, **{"session.id": "chat"}))
        monitor.until(lambda: monitor.outcomes()["ended"]["scored"] == 2 and waiting(monitor) == 1, "nothing waits")
        for restarts in (True, False):
            time.sleep(6)  # so long that it would be over
            assert "whole" not in {each["rubric"] for each in monitor.verdicts()}
            if restarts:
                monitor.stop(signal.SIGKILL)
                monitor.start()
        provider.standing = embeds(meaning_of)
        monitor.until(lambda: "whole" in {each["rubric"] for each in monitor.verdicts()}, "it never ended")
        (verdict,) = (each for each in monitor.verdicts() if each["rubric"] == "whole")
        assert (verdict["session_id"], verdict["passed"], verdict["revision"]) == ("chat", True, 1)
        assert monitor.get(f"/v1/traces/{verdict['case_id']}")["turns"] == 3


@LITELLM.mark
def test_what_is_too_much_to_wait_is_judged_without_embeddings_and_says_so(serving):
    with Provider(unauthorised()) as provider:
        monitor = serving(**asking(provider, max_waiting=2))
        for number in range(5):
            monitor.post(spoken(number))
        monitor.until(lambda: len(monitor.verdicts()) == 3, "what is too much still waits")
        given_up = [s for v in monitor.verdicts() for s in v["scores"] if s["metric"] == "answer_relevancy"]
        assert {(each["status"], each["reason"].partition(": ")[0]) for each in given_up} == {
            ("error", "embeddings unavailable")
        }
        assert all("authentication failed" in each["reason"] for each in given_up)
        assert waiting(monitor) == 2
        assert "sk-secret-1" not in json.dumps(monitor.verdicts()) + json.dumps(monitor.logged())
