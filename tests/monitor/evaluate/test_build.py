"""Answering: what is configured is put together in its order; what is not is not even imported."""

from __future__ import annotations

import json
import subprocess
import sys

import yaml

from sidejudge.monitor.config import resolve
from sidejudge.monitor.evaluate.backends import OUTAGE, OVER_BUDGET, Synchronous
from sidejudge.monitor.evaluate.build import build_backends, judge_settings
from sidejudge.monitor.evaluate.judge import panel_member as member
from sidejudge.monitor.offline.score.request import LruCache, Transient
from sidejudge.scoring.evaluators import lexical

JUDGE = {"model": "openai/gpt-4.1-mini-2025-04-14"}


def config(tmp_path, **evaluators):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({"evaluators": evaluators}))
    return resolve(path, {}).config


def put_together(tmp_path, **evaluators):
    made = config(tmp_path, **evaluators)
    return build_backends(made, memory=Transient(), vectors=LruCache(), observer=None, clock_ns=lambda: 0)


def test_without_a_judge_words_answer_at_once_and_nobody_is_waited_for(tmp_path):
    made = put_together(tmp_path)
    assert (made.at_once, made.others, made.judge) == (lexical.answer, None, None)
    assert put_together(tmp_path, order=["judge"]).at_once is None


def test_the_order_says_who_is_asked_first(tmp_path):
    usual = put_together(tmp_path, judge=JUDGE)
    assert (usual.at_once, usual.others.order, usual.others.judge) == (lexical.prove, (usual.judge,), usual.judge)
    first = put_together(tmp_path, order=["judge", "lexical"], judge=JUDGE)
    assert (first.at_once, first.others.order) == (None, (first.judge, Synchronous(lexical.prove)))
    alone = put_together(tmp_path, order=["judge"], judge=JUDGE)
    assert (alone.at_once, alone.others.order) == (None, (alone.judge,))


def test_embeddings_are_asked_between_words_and_the_judge_unless_the_order_says_otherwise(tmp_path):
    made = put_together(tmp_path, embedding={}, judge=JUDGE)
    assert (made.at_once, made.others.order) == (lexical.prove, (made.embedding, made.judge))
    alone = put_together(tmp_path, embedding={})
    assert (alone.at_once, alone.others.order, alone.others.judge) == (lexical.answer, (alone.embedding,), None)
    last = put_together(tmp_path, order=["judge", "embedding"], embedding={}, judge=JUDGE)
    assert (last.at_once, last.others.order) == (None, (last.judge, last.embedding))


def test_embeddings_that_are_configured_load_nothing_before_they_are_asked(tmp_path):
    program = """
import json, sys, threading
from sidejudge.monitor.evaluate.build import build_backends
from sidejudge.monitor.offline.score.request import Transient, LruCache
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.evaluators import EmbeddingSection, EvaluatorsSection
config = Config(evaluators=EvaluatorsSection(embedding=EmbeddingSection()))
build_backends(config, memory=Transient(), vectors=LruCache(), observer=None, clock_ns=lambda: 0)
judge = "sidejudge.monitor.evaluate.judge.judge_backend"
heavy = ("litellm", "sentence_transformers", "torch", "transformers", "numpy", judge)
print(json.dumps([[n for n in sys.modules if n.startswith(heavy)], [t.name for t in threading.enumerate()]]))
"""
    reported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(reported.stdout) == [[], ["MainThread"]]


def test_address_and_key_are_the_judges_and_not_those_of_other_providers_on_its_panel(tmp_path):
    given = {
        **JUDGE, "api_base": "http://here/v1", "api_key": "sk-1", "timeout": "20s",
        "panel": ["openai/o-2025-01-01", "anthropic/c-20250101"],
        "price": {"input_usd_per_million": 1, "output_usd_per_million": 2},
    }  # fmt: skip
    own, sister, other = judge_settings(config(tmp_path, judge=given)).models
    assert [model.api_key for model in (own, sister, other)] == ["sk-1", "sk-1", None]
    assert [model.api_base for model in (own, sister, other)] == ["http://here/v1", "http://here/v1", None]
    assert [model.price is not None for model in (own, sister, other)] == [True, False, False]
    assert {model.timeout_s for model in (own, sister, other)} == {20.0}


def test_the_judge_and_the_runtime_call_an_outage_by_the_same_name():
    assert (member.OUTAGE, member.OVER_BUDGET) == (OUTAGE, OVER_BUDGET)


def test_a_monitor_without_a_judge_imports_nothing_of_it_and_starts_no_thread_for_it(tmp_path):
    state = tmp_path / "s.sqlite"
    program = f"""
import json, sys, threading
from sidejudge.monitor.runtime.app import Monitor
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.model import StoreSection
monitor = Monitor(Config(store=StoreSection(path={str(state)!r})))
heavy = (
    "litellm", "openai", "sidejudge.monitor.evaluate.judge.", "sidejudge.integrations.judge",
    "sidejudge.scoring.judging", "sentence_transformers",
)
print(json.dumps([[n for n in sys.modules if n.startswith(heavy)], [t.name for t in threading.enumerate()]]))
monitor.store.close()
"""
    reported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(reported.stdout) == [[], ["MainThread", "sidejudge-store"]]


def models_of(tmp_path, judge_config):
    path = tmp_path / "c.yaml"
    path.write_text(
        yaml.safe_dump({"evaluators": {"judge": JUDGE}, "rubrics": {"agent": {"judge_config": judge_config}}})
    )
    made = build_backends(
        resolve(path, {}).config, memory=Transient(), vectors=LruCache(), observer=None, clock_ns=lambda: 0
    )
    return list(made.judge.states())


def test_the_judge_of_conversations_is_the_one_that_its_configuration_names(tmp_path):
    own, other = JUDGE["model"], "openai/gpt-4o-2024-08-06"
    assert models_of(tmp_path, {"model": "gpt-4o-2024-08-06"}) == [own, other]
    assert models_of(tmp_path, {"model": other}) == [own, other]
    assert models_of(tmp_path, {"provider": "anthropic", "model": "c-20250101"}) == [own, "anthropic/c-20250101"]
    assert models_of(tmp_path, {"model": "gpt-4.1-mini-2025-04-14"}) == [own]
    assert models_of(tmp_path, {}) == [own]
