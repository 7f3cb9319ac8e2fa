"""Which rows of a page begin a trace that waits, and what is learned of the services that names are of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidejudge.integrations.langfuse.normalise import span_id
from sidejudge.integrations.raw import RawSpan
from sidejudge.integrations.store.pulled import Taken
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.ingest.langfuse import pending
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace
from sidejudge.monitor.ingest.langfuse.pending import Pending, Services
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler
from tests.monitor.ingest.langfuse.test_pull import rows, trace_id


@pytest.fixture
def scene(tmp_path):
    store, outcomes = Store(tmp_path / "state.sqlite"), TraceOutcomes()
    sampler = Sampler(Config.model_validate({"sampling": {"rate": 1.0}}).sampling)
    yield Pending(pulled=store.pulled, outcomes=outcomes, sampler=sampler, clock_ns=lambda: 7), store, outcomes
    store.close()


async def test_what_is_dealt_with_holds_back_nothing_that_is_on_the_same_page(scene):
    waiting, store, _ = scene
    of_two = frozenset(bytes.fromhex(span_id(row["id"])) for row in rows(2))
    await store.pulled.put([
        Taken(trace_id=trace_id(1), last_ns=1, reason="sampled_out"),
        Taken(trace_id=trace_id(2), last_ns=1, reason=None, spans=of_two),
    ])  # fmt: skip
    await waiting.note([*rows(1), *rows(2), *rows(3)])
    assert set(waiting.listed) == {trace_id(3)}
    await waiting.note([*rows(1), *rows(2, spans=4), *rows(3)])
    assert set(waiting.listed) == {trace_id(2), trace_id(3)}, "one has grown"


@pytest.mark.parametrize(("spans", "shed"), [(1, False), (2, False), (3, True)])
async def test_a_trace_of_more_rows_than_are_held_ends_at_sight(scene, monkeypatch, spans, shed):
    waiting, _, outcomes = scene
    monkeypatch.setattr(pending, "MOST_IN_TRACE", 2)
    await waiting.note(rows(1, spans=spans))
    assert waiting.holds(trace_id(1)) is not shed
    assert dict(outcomes.balance().ended) == ({EndReason.SHED: 1} if shed else {})


def listed(name: str | None, environment: str | None = None) -> ListedTrace:
    found = ListedTrace.of("t", 0)
    found.root_name, found.root_environment = name, environment
    return found


def spans(*services: Any) -> list[RawSpan]:
    return [
        RawSpan(
            trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="a", start_ns=0, end_ns=0,
            resource={} if service is None else {"service.name": service},
        )
        for service in services
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("learned", "known"),
    [
        ([("shop", "shop")], "shop"), ([("shop",), ("shop",)], "shop"), ([("shop",), ("sho" + "p",)], "shop"),
        ([("shop", "till")], None), ([("shop",), ("till",)], None), ([("shop",), ("till",), ("shop",)], None),
        ([(3,)], None), ([("",)], None), ([(None,)], None), ([], None),
    ],
)  # fmt: skip
def test_a_name_is_of_the_one_service_that_all_of_its_traces_were_of(learned, known):
    services = Services()
    for each in learned:
        services.learn(listed("checkout", "prod"), spans(*json.loads(json.dumps(each))))
    assert services.of(listed("checkout", "prod")) == known
    assert services.of(listed("checkout", "dev")) is None
    assert services.of(listed("other", "prod")) is None
    assert services.of(listed(None)) is None


def test_names_differ_by_their_first_characters_and_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr(pending, "MOST_NAMES", 2)
    services = Services()
    services.learn(listed("n" * 300, "e" * 300), spans("shop"))
    assert services.of(listed("n" * 200 + "x", "e" * 200 + "x")) == "shop"
    assert services.of(listed("n" * 199 + "x", "e" * 200)) is None
    assert services.of(listed("n" * 200, "e" * 199 + "x")) is None
    for name in ("a", "b", "a", "c"):
        services.learn(listed(name), spans(name))
    assert [services.of(listed(name)) for name in ("a", "b", "c")] == ["a", None, "c"]
