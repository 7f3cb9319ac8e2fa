"""What ought to have been answered: where it is looked for, which goes first, and what happens when it comes late."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from sidejudge.integrations.langfuse.observations import instant
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.evaluate.references.lookup import References
from sidejudge.monitor.evaluate.references.places import (
    MOST_ENTRIES,
    Gathering,
    InCorrections,
    InDataset,
    InFile,
    InScores,
    Unreadable,
    digest,
    key_of_map,
)
from sidejudge.scoring.case.case import Case
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.datasets import datasets_of, item, part
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.waiting import until

TRACE = "1" * 32
RECORDED = Path(__file__).parents[3] / "data" / "otlp" / "langfuse-v5" / "s2_agents" / "001.pb"


def case(**more: Any) -> Case:
    return Case(**{"case_id": TRACE, "trace_id": TRACE, "model_output": "said", **more})


@pytest.fixture
def fake() -> Iterator[FakeLangfuse]:
    with FakeLangfuse(Mode.NEW, parts=[Observations.part, part]) as server:
        yield server


@pytest.fixture
async def client(fake: FakeLangfuse) -> AsyncIterator[Langfuse]:
    access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
    async with Langfuse(access, budget=RequestBudget(1e9), timeout_s=5) as langfuse:
        yield langfuse


class Remembered(list[Any]):
    """Names of keys, traces, and what was found there, just now."""

    def referred(self, since_ns: int) -> list[Any]:
        return [(time.time_ns(), *row) for row in self]

    def referred_of(self, trace_id: bytes) -> list[Any]:
        return [(name, reported) for name, of, reported in self if of == trace_id]


def book(*sources: Any, store: Any = None, reopen: Callable[[bytes], bool] = lambda _: True) -> References:
    return References(sources, store=store or Remembered(), reopen=reopen, clock_ns=time.time_ns, late_ns=10**12)


def correct(fake: FakeLangfuse, trace_id: str, value: str, **more: Any) -> None:
    body = {"traceId": trace_id, "name": "output", "value": value, "dataType": "CORRECTION", **more}
    auth = (PUBLIC_KEY, SECRET_KEY)
    httpx.post(f"{fake.base_url}/api/public/scores", json=body, auth=auth).raise_for_status()


async def test_the_first_place_that_has_one_wins_and_what_was_looked_for_before_it_is_noted(fake, client):
    datasets_of(fake)["golden"] = [item("from dataset", sourceTraceId=TRACE)]
    dataset = InDataset(client, "golden", None)
    references = book("expected_outcome", dataset, "golden")
    await references.refresh()
    reported = references.find(case(metadata={"expected_outcome": "own", "golden": "last"}))
    assert (reported.value, reported.where, reported.lookups) == ("own", "metadata.expected_outcome", ())
    reported = references.find(case(metadata={"golden": "last"}))
    assert (reported.value, reported.where, len(reported.lookups)) == ("from dataset", "dataset golden", 1)
    other = references.find(case(trace_id="2" * 32, metadata={"golden": "last"}))
    assert (other.value, other.lookups[0][1]) == ("last", None)


async def test_items_are_found_by_source_trace_and_by_a_key_that_both_have(fake, client):
    datasets_of(fake)["golden"] = [
        item({"a": 1}, sourceTraceId=TRACE), item("by key", metadata={"call": {"id": 17}}),
        item("old", sourceTraceId="2" * 32, status="ARCHIVED"), item(None, sourceTraceId="3" * 32),
    ]  # fmt: skip
    by_source, by_key = InDataset(client, "golden", None), InDataset(client, "golden", "metadata.call.id")
    await by_source.refresh()
    await by_key.refresh()
    assert book(by_source).find(case()).value == {"a": 1}
    assert book(by_source).find(case(trace_id="2" * 32)).value is None
    assert book(by_key).find(case(metadata={"call.id": "17"})).value == "by key"
    assert book(by_key).find(case()).lookups == ()


async def test_a_dataset_of_many_pages_is_read_whole_and_the_newest_of_two_items_counts(fake, client):
    items = [item(f"v{n}", sourceTraceId=f"{n:032x}") for n in range(1, 251)]
    datasets_of(fake)["golden"] = [*items, item("newer", sourceTraceId=f"{1:032x}")]
    place = InDataset(client, "golden", None)
    await place.refresh()
    assert (len(place.entries), place.entries.get(f"{1:032x}"), place.entries.get(f"{250:032x}")) == (
        250,
        "newer",
        "v250",
    )


@pytest.mark.parametrize("mode", [Mode.DUAL, Mode.EVENTS_ONLY, Mode.NEW], ids=lambda mode: mode.value)
async def test_corrections_by_people_are_the_right_output(mode):
    with FakeLangfuse(mode) as fake:
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        async with Langfuse(access, budget=RequestBudget(1e9)) as client:
            for number in range(120):
                correct(fake, f"{number:032x}", f"right {number}")
            correct(fake, TRACE, "of a step", observationId="a" * 16)
            place = InCorrections(client, time.time_ns, 10**15)
            await place.refresh()
            assert len(place.entries) == 121
            assert book(place).find(case()).value == "of a step"
            correct(fake, "9" * 32, "newer")
            await place.refresh()
            assert (len(place.entries), place.entries.get("9" * 32)) == (122, "newer")


@pytest.mark.parametrize("mode", [Mode.DUAL, Mode.NEW], ids=lambda mode: mode.value)
async def test_a_correction_that_is_edited_or_deleted_a_day_later_is_noticed(mode):
    with FakeLangfuse(mode) as fake:
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        async with Langfuse(access, budget=RequestBudget(1e9)) as client:
            now_ns = [time.time_ns()]
            hour_ns = 3600 * 10**9
            place = InCorrections(client, lambda: now_ns[0], 10 * hour_ns)

            async def reads(**wanted: str | None) -> None:
                now_ns[0] += 60 * 10**9
                await place.refresh()
                assert {name: place.entries.get(name * 32) for name in wanted} == wanted

            at = instant(now_ns[0] - hour_ns)
            for name in "abc":
                correct(fake, name * 32, "first", id=f"of-{name}")
                fake.scores.edit(f"of-{name}", timestamp=at)
            await reads(a="first", b="first", c="first")
            fake.scores.edit("of-a", value="edited")
            fake.scores.remove("of-b")
            await reads(a="edited", b=None, c="first")
            now_ns[0] += 20 * hour_ns  # older than what is listed: neither edited nor gone
            await reads(a="edited", b=None, c="first")


async def test_corrections_are_read_in_time_after_a_clock_that_was_ahead_was_set_back(fake, client):
    now_ns = [time.time_ns() + 86_400 * 10**9]
    place = InCorrections(client, lambda: now_ns[0], 10**15)
    correct(fake, TRACE, "first", id="of-a")
    await place.refresh()
    now_ns[0] = time.time_ns()
    fake.scores.edit("of-a", value="edited")
    correct(fake, "9" * 32, "new")
    await place.refresh()
    assert (place.entries.get(TRACE), place.entries.get("9" * 32)) == ("edited", "new")


def score(fake: FakeLangfuse, id_: str, value: Any, **more: Any) -> None:
    kind = "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
    fake.scores.add(id=id_, **{"traceId": TRACE, "name": "tone", "value": value, "dataType": kind, **more})


@pytest.mark.parametrize("newer", [True, False], ids=["v3", "v2"])
async def test_scores_of_others_are_read_by_name_and_our_own_are_not(newer):
    with FakeLangfuse(Mode.NEW if newer else Mode.DUAL) as fake:
        if not newer:
            fake.standing_fault = lambda request: faults.page() if request.path.startswith("/v3/") else None
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=SECRET_KEY)
        async with Langfuse(access, budget=RequestBudget(1e9)) as client:
            place = InScores(client, "tone", time.time_ns, 10**15)
            references = References(
                (), store=Remembered(), reopen=lambda _: True, clock_ns=time.time_ns, late_ns=10**12,
                scores=lambda _: place,
            )  # fmt: skip
            references.follow(["tone"])
            score(fake, "a", 0.5, source="EVAL", comment="one\nline", timestamp=instant(time.time_ns() - 3600 * 10**9))
            score(fake, "b", "good", source="ANNOTATION", authorUserId="ann", observationId="b" * 16)
            score(fake, "c", 0.1, metadata={"written": "2026-01-01T00:00:00.000Z"})
            score(fake, "d", 0.1, name="taste")
            await references.refresh()
            given, lookups = references.scores(case(), ["tone", "taste"])
            assert [(each.value, each.label, each.by, each.span_id) for each in given] == [
                (0.5, None, "an evaluator of Langfuse", None), (None, "good", "ann", "b" * 16),
            ]  # fmt: skip
            assert (given[0].explanation, given[0].via, len(lookups)) == ("one line", "langfuse", 1)
            assert references.places() == {"scores tone": "ok"}


async def test_what_is_no_score_in_a_place_that_others_write_counts_nowhere_and_costs_no_verdict(client):
    place = InScores(client, "tone", time.time_ns, 10**15)
    tone = {"name": "tone", "value": 0.5}
    place.entries.replace({TRACE: [tone, {"value": 1.0}, {"name": 3}, "tone", None, {**tone, "value": math.inf}]})
    references = References(
        (), store=Remembered(), reopen=lambda _: True, clock_ns=time.time_ns, late_ns=10**12, scores=lambda _: place
    )
    references.follow(["tone"])
    given, lookups = references.scores(case(), ["tone"])
    assert ([each.value for each in given], len(lookups)) == ([0.5], 1)


async def test_a_score_that_a_shifting_list_leaves_out_is_not_taken_for_deleted(fake, client):
    now_ns = [time.time_ns()]
    place = InScores(client, "tone", lambda: now_ns[0], 10**15)
    for name in "ab":
        score(fake, name, 0.5, traceId=name * 32)
    await place.refresh()
    now_ns[0] += 60 * 10**9
    gone = {"data": [], "meta": {"limit": 100}}
    fake.faults.append(lambda _: faults.answer(gone))
    fake.scores.remove("b")
    await place.refresh()
    assert (place.entries.get("a" * 32) is not None, place.entries.get("b" * 32)) == (True, None)


async def test_a_file_is_read_again_when_it_has_changed_and_bad_lines_cost_only_themselves(tmp_path):
    path = tmp_path / "golden.jsonl"
    place = InFile(path, "metadata.call_id")
    with pytest.raises(Unreadable, match="No such file"):
        await place.refresh()
    path.write_text('{"metadata": {"call_id": "a"}, "expected_outcome": {"x": 1}}\nbroken\n[1]\n{"metadata": 3}\n')
    await place.refresh()
    assert book(place).find(case(metadata={"call_id": "a"})).value == {"x": 1}
    path.write_text('{"metadata": {"call_id": "a"}, "expected_output": "longer than before, so its size tells"}\n')
    await place.refresh()
    assert book(place).find(case(metadata={"call_id": "a"})).value == "longer than before, so its size tells"


async def test_of_a_file_the_first_line_under_a_key_that_expects_something_in_json_counts(tmp_path):
    path = tmp_path / "golden.jsonl"
    path.write_text(
        """{"case_id": "a", "expected_outcome": "1"}
        {"case_id": "b"}
        {"case_id": "b", "expected_outcome": NaN}
        {"case_id": "b", "expected_outcome": "2"}
        {"case_id": "b", "expected_outcome": "3"}""",
        encoding="utf-8-sig",
    )
    await (place := InFile(path, "case_id")).refresh()
    assert place.entries.held == {"a": "1", "b": "2"}


async def test_what_cannot_be_read_now_leaves_what_was_read_before(fake, client):
    datasets_of(fake)["golden"] = [item("kept", sourceTraceId=TRACE)]
    references = book(InDataset(client, "golden", None))
    await references.refresh()
    fake.standing_fault = faults.database_away()
    await references.refresh()
    assert references.find(case()).value == "kept"


def test_memory_is_bounded():
    gathering = Gathering()
    for number in range(MOST_ENTRIES + 5):
        gathering.add(str(number), 1)
    assert (len(gathering.held), gathering.left_out) == (MOST_ENTRIES, 5)
    assert not Gathering().add("a", "x" * (65 * 2**20))
    assert Gathering().add("k" * 5000, 1)


async def test_references_that_came_changed_or_went_have_their_traces_judged_again_and_others_not(fake, client):
    datasets_of(fake)["golden"] = [item(f"v{n}", sourceTraceId=f"{n:032x}") for n in range(1, 4)]
    place = InDataset(client, "golden", None)
    await place.refresh()
    seen = Remembered(
        (place.entries.name_of(f"{n:032x}"), bytes([n]) * 16, digest(value))
        for n, value in ((1, "v1"), (2, "other"), (3, None), (4, "gone"), (5, None))
    )
    again: list[bytes] = []
    references = book(place, store=seen, reopen=lambda trace_id: not again.append(trace_id))
    assert await references.refresh() == 3
    assert sorted(again) == [bytes([n]) * 16 for n in (2, 3, 4)]


async def test_while_a_place_was_never_read_nothing_is_judged_again_for_its_sake(fake, client):
    place = InDataset(client, "unknown", None)
    seen = Remembered([(place.entries.name_of(TRACE), bytes(16), digest("known"))])
    assert await book(place, store=seen).refresh() == 0


def test_keys_are_compared_as_text():
    assert key_of_map("a.b", {"a": {"b": 3}}) == key_of_map("a.b", {"a.b": "3"}) == "3"
    assert key_of_map("a", {"a": True}) == "true"
    assert key_of_map("a", {"a": {}}) is None


def called(number: int) -> list[RawSpan]:
    """A trace a minute ago, of call ``number``."""
    spans = read_files([RECORDED]).spans
    shift = time.time_ns() - 60 * 10**9 - max(span.end_ns for span in spans)
    stated = {"langfuse.trace.metadata.call_id": json.dumps(f"call {number}")}
    return [
        msgspec.structs.replace(
            span, trace_id=f"{number + 1:032x}", attributes={**span.attributes, **stated},
            start_ns=(span.start_ns + shift) // 10**6 * 10**6, end_ns=(span.end_ns + shift) // 10**6 * 10**6,
        )
        for span in spans
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["otlp", "pull"])
async def test_a_reference_that_comes_after_the_verdict_makes_a_revision_under_the_same_ids(
    started, fake, tmp_path, way
):
    keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
    path = tmp_path / "golden.jsonl"
    path.write_text("")
    sources: dict[str, Any] = {"otlp": {"http": "127.0.0.1:0"}}
    if way == "pull":
        sources["langfuse"] = {**keys, "poll": "200ms", "settle": "100ms"}
    running = await started(
        sources=sources, sinks={"langfuse": {**keys, "scores": "all"}}, routes=[{"rubrics": ["benchmarks"]}],
        references=[
            {"langfuse_corrections": True}, {"langfuse_dataset": "golden"},
            {"file": str(path), "key": "metadata.call_id"},
        ],
    )  # fmt: skip
    datasets_of(fake)["golden"] = []
    spans = [span for number in range(3) for span in called(number)]
    if way == "pull":
        observations_of(fake).put(*rows_of(spans))
    else:
        await running.post(encode_spans(spans))
    await running.settled(3)
    await until(lambda: len({row["traceId"] for row in fake.scores.stored()}) == 3)
    before = {row["id"]: row for row in fake.scores.stored()}
    datasets_of(fake)["golden"] = [item("Paris", sourceTraceId=f"{1:032x}")]
    correct(fake, f"{2:032x}", "London")
    path.write_text('{"metadata": {"call_id": "call 2"}, "expected_outcome": "Rome"}\n')
    references = running.monitor.references
    assert references is not None
    assert await references.refresh() == 3
    await until(lambda: running.monitor.outcomes.balance().revisions == 3)
    stories = [await running.get(f"/v1/traces/{number + 1:032x}") for number in range(3)]
    assert [story["reference"] for story in stories] == ["dataset golden", "corrections", f"file {path}"]
    assert [story["revision"] for story in stories] == [2, 2, 2]
    assert await references.refresh() == 0, "nothing has changed since"
    verdicts = (await running.get("/v1/verdicts"))["verdicts"]
    assert {verdict["revision"] for verdict in verdicts} == {2}

    def arrived() -> bool:
        rows = {row["id"]: row for row in fake.scores.stored()}
        return all(rows[each] != row for each, row in before.items() if row["name"] == "benchmarks_state")

    await until(arrived)
    ids = [row["id"] for row in fake.scores.stored()]
    assert len(ids) == len(set(ids))
    assert set(before) <= set(ids)
