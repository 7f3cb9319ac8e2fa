"""Contents of traces that failed stay: on the page, for `try`, over a restart; redacted and bounded."""

from __future__ import annotations

import json
import random
import sqlite3
import tracemalloc
from contextlib import closing

import pytest

from sidejudge.integrations.otlp.wire.chunk import decoded_size
from sidejudge.integrations.otlp.wire.kept import PackedPart, PackedSpansError, by_span, pack, unpack
from sidejudge.integrations.raw import RawEvent, RawLogRecord, RawSpan
from sidejudge.monitor.config import ConfigError
from sidejudge.monitor.deliver.kept_contents import (
    MOST_DECODED,
    MOST_PACKED,
    KeptContents,
    _draw,
    held_spans,
    redacted,
    redacting,
)
from sidejudge.monitor.runtime.memory_bound import memory_bound
from sidejudge.scoring.checks.redaction import Redaction
from tests.monitor.api.still import Still
from tests.otlp_requests import HIGH, S, request, span, trace

KEY = "sk-" + "a1B2" * 8
ASKED = {
    "langfuse.observation.type": "agent",
    "langfuse.observation.input": f"When? I am ann@example.com, my key is {KEY}.",
    "langfuse.observation.output": "Tomorrow.",
}  # fmt: skip
FAILING, PASSING = {"attributes": ASKED}, {"attributes": ASKED, "name": "fine"}
ROUTES = {
    "scenarios": {"any": {"tools_should_include": ["lookup"]}, "none": {"tools_should_exclude": ["lookup"]}},
    "routes": [
        {"match": {"name": "fine"}, "rubrics": ["workflow"], "scenario": "none"},
        {"rubrics": ["workflow"], "scenario": "any"},
    ],
    "assembly": {"late": "1m"},
}
MINUTE = 60 * 10**9


@pytest.fixture
def still(configured, tmp_path):
    made = []

    def make(keep=None, **sections):
        store = {"path": str(tmp_path / "s.sqlite"), **sections.pop("store", {})}
        if keep is not None:
            store["keep_contents"] = keep
        made.append(Still(configured(**{**ROUTES, "store": store, **sections})))
        if len(made) > 1:
            made[-1].now = made[-2].now
        return made[-1]

    yield make
    for one in made:
        one.monitor.store.close()


async def later(still, minutes=5):
    """Two purges, behind the window in which late spans come."""
    await still.monitor.retention.purge()
    still.now += minutes * MINUTE
    await still.monitor.retention.purge()


async def case(still, number, caller="127.0.0.1"):
    answer = await still.get(f"/v1/traces/{trace(number, HIGH).hex()}", caller=caller)
    return answer.json().get("case")


async def page(still, number, caller="127.0.0.1"):
    return (await still.get(f"/traces/{trace(number, HIGH).hex()}", caller=caller)).text


def on_disk(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute("SELECT count(*) FROM contents WHERE body IS NOT NULL").fetchone()[0]


async def test_a_failed_trace_is_shown_after_its_chunks_are_gone_and_after_a_restart(still):
    one = still()
    await one.take(1, **FAILING)
    await one.take(2, **PASSING)
    await one.judge()
    verdicts = {each["trace_id"]: each["passed"] for each in one.monitor.store.verdicts()}
    assert verdicts == {trace(1, HIGH).hex(): False, trace(2, HIGH).hex(): True}
    before = await case(one, 1)
    await later(one)
    assert one.monitor.store.chunks(trace(1, HIGH)) == []
    kept = await case(one, 1)
    assert KEY in json.dumps(before)
    assert kept == json.loads(json.dumps(before).replace(KEY, "[key]"))
    assert await case(one, 2) is None
    shown, gone = await page(one, 1), await page(one, 2)
    assert "Tomorrow." in shown
    assert "Kept contents" in shown
    assert f"sidejudge try workflow {trace(1, HIGH).hex()}" in shown
    assert "store.keep_contents" in gone
    assert "Tomorrow." not in gone
    one.monitor.store.close()
    again = still()
    assert await case(again, 1) == kept


async def test_what_holds_nothing_to_replace_stays_as_it_came_beside_what_is_redacted_or_damaged(still, tmp_path):
    one = still()
    await one.take(1, **FAILING)
    plain = {"langfuse.observation.type": "tool", "langfuse.observation.output": "found"}
    spans = [S(trace_id=trace(1, HIGH), span_id=span(9), parent_id=span(2), name="find", attributes=plain)]
    await one.monitor.intake.consume(request(spans))
    await one.judge()
    chunks = one.monitor.store.chunks(trace(1, HIGH))
    before = await case(one, 1)
    await later(one)
    kept = list(unpack(one.monitor.store.contents.of(trace(1, HIGH))))
    assert [part for part in kept if isinstance(part, bytes)] == [chunk for chunk in chunks if b"sk-" not in chunk]
    assert await case(one, 1) == json.loads(json.dumps(before).replace(KEY, "[key]"))
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as connection, connection:
        connection.execute("UPDATE contents SET body = ?", (pack([*kept, b"\x0a\xff"], 10_000),))
    assert await case(one, 1) == json.loads(json.dumps(before).replace(KEY, "[key]"))


async def test_contents_that_are_kept_are_shown_to_those_alone_who_see_contents(still):
    one = still()
    await one.take(1, **FAILING)
    await one.judge()
    await later(one)
    assert await case(one, 1, caller="10.0.0.1") is None
    assert "Tomorrow." not in await page(one, 1, caller="10.0.0.1")


async def test_a_kill_before_they_were_written_loses_none(still):
    one = still()
    await one.take(1, **FAILING)
    await one.judge()
    one.monitor.store.close()
    again = still()
    assert again.monitor.store.contents.of(trace(1, HIGH)) is None
    await later(again)
    assert (await case(again, 1))["model_output"] == "Tomorrow."


async def test_they_go_with_their_time_and_all_of_them_once_they_are_switched_off(still, tmp_path):
    one = still({"failed": "1h"})
    await one.take(1, **FAILING)
    await one.judge()
    await later(one)
    await later(one, 50)
    assert await case(one, 1) is not None
    await later(one, 10)
    assert await case(one, 1) is None
    assert one.monitor.store.details(trace(1, HIGH)) is not None
    await one.take(2, **FAILING)
    await one.judge()
    await later(one)
    assert on_disk(tmp_path / "s.sqlite") == 1
    one.monitor.store.close()
    off = still({"failed": "0s"})
    await off.take(3, **FAILING)
    await off.judge()
    await later(off)
    assert on_disk(tmp_path / "s.sqlite") == 0
    assert off.monitor.contents is None


async def test_a_share_of_the_passing_ones_stays_too(still):
    one = still({"passed": 0.3})
    for number in range(60):
        await one.take(number, **PASSING)
    await one.judge()
    await later(one)
    drawn = [number for number in range(60) if _draw(trace(number, HIGH)) < 0.3]
    assert [number for number in range(60) if await case(one, number) is not None] == drawn
    assert 5 < len(drawn) < 35


async def test_what_is_to_be_replaced_is_not_on_the_disk(still):
    one = still({"redact": ["email"], "redact_patterns": ["Tomo.{5}"]})
    await one.take(1, **FAILING)
    await one.judge()
    await later(one)
    found = await case(one, 1)
    assert (found["input"], found["model_output"]) == ("When? I am [email], my key is [key].", "[redacted]")
    details = one.monitor.store.details(trace(1, HIGH))
    assert (details["input_beginning"], details["output_beginning"]) == (found["input"], found["model_output"])


async def test_no_reason_of_a_verdict_holds_it_whoever_may_see_contents(still, tmp_path):
    one = still({"redact": ["email"]}, routes=[{"rubrics": ["run_health"]}])
    failed = {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": f"{KEY} of ann@example.com"}
    await one.take(1, attributes=ASKED | failed)
    await one.judge()
    (verdict,) = one.monitor.store.verdicts()
    assert "[key] of [email]" in json.dumps(verdict)
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as connection, connection:
        rows = connection.execute("SELECT verdict FROM verdicts UNION ALL SELECT story FROM traces").fetchall()
    assert rows
    assert not any(KEY in text or "ann@example.com" in text for (text,) in rows)


async def test_without_room_they_are_left_out_and_the_verdict_stands(still, caplog):
    one = still(store={"max_bytes": "1MiB"})
    await one.monitor.store.purge(0)
    while one.monitor.store.fullness < 0.8:
        await one.monitor.store.kept.change({f"x{one.monitor.store.fullness}": "x" * 50_000})
        await one.monitor.store.purge(0)
    keeping = KeptContents(one.monitor.store, one.monitor.contents.terms)
    for number in (2, 1):
        await one.take(number, **FAILING)
        await one.judge()
        await keeping.write()
    assert caplog.text.count("no room for contents") == 1
    assert (one.monitor.store.contents.of(trace(1, HIGH)), one.monitor.store.contents.waiting(9)) == (None, [])
    assert [each["passed"] for each in one.monitor.store.verdicts()] == [False, False]


async def test_a_trace_of_which_one_part_is_huge_is_left_out_and_others_are_not(still, caplog):
    one = still()
    await one.take(1, attributes={**ASKED, "langfuse.observation.output": "so " * 1_000_000})
    await one.take(2, **FAILING)
    await one.judge()
    await later(one)
    assert await case(one, 1) is None
    assert await case(one, 2) is not None
    assert "contents of a trace are too large to be kept" in caplog.text


async def test_a_large_request_is_redacted_span_by_span(still):
    """A batch of a long run holds its history again with each call: no span is too large, all together are."""
    one = still({"redact": ["email"]})
    stated = {"langfuse.observation.type": "generation", "langfuse.observation.input": "[2, ann@example.com] " * 1_000}
    calls = [
        S(trace_id=trace(1, HIGH), span_id=span(number), parent_id=span(2), name=f"call {number}", attributes=stated)
        for number in range(3, 15)
    ]
    await one.monitor.intake.consume(request([S(trace_id=trace(1, HIGH), span_id=span(2), attributes=ASKED), *calls]))
    await one.judge()
    assert sum(map(decoded_size, one.monitor.store.chunks(trace(1, HIGH)))) > MOST_DECODED
    await later(one)
    spans = held_spans(one.monitor.store, trace(1, HIGH)).spans
    assert sorted(each.name for each in spans) == sorted(["step", *(call.name for call in calls)])
    assert {each.attributes["langfuse.observation.input"][:12] for each in spans} == {"[2, [email]]", "When? I am ["}
    assert {each.resource["service.name"] for each in spans} == {"shop"}


async def test_a_large_request_with_nothing_to_replace_stays_as_it_came(still):
    one = still()
    stated = {"langfuse.observation.type": "tool", "langfuse.observation.output": "[2, so] " * 20_000}
    calls = [S(trace_id=trace(1, HIGH), span_id=span(number), attributes=stated) for number in (3, 4)]
    await one.monitor.intake.consume(request([S(trace_id=trace(1, HIGH), span_id=span(2)), *calls]))
    await one.judge()
    (chunk,) = one.monitor.store.chunks(trace(1, HIGH))
    assert decoded_size(chunk) > MOST_DECODED
    await later(one)
    assert list(unpack(one.monitor.store.contents.of(trace(1, HIGH)))) == [chunk]


def test_what_cannot_be_taken_apart_stays_whole():
    large = request([S(trace_id=trace(1), span_id=span(n)) for n in (1, 2)], {"much": "x" * 20_000})
    whole = [large, b"\xff" * 9, b"", b"\x12\x02\x0a\x00"]
    assert [list(by_span(each)) for each in whole] == [[each] for each in whole]


async def test_contents_that_are_damaged_are_said_to_be_and_nothing_else_is_lost(still, tmp_path):
    one = still()
    await one.take(1, **FAILING)
    await one.judge()
    await later(one)
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as connection, connection:
        connection.execute("UPDATE contents SET body = ?", (b"\x00" * 50,))
    assert await case(one, 1) is None
    assert "What is held of its spans cannot be read" in await page(one, 1)


async def test_late_spans_are_kept_with_the_others(still):
    one = still()
    await one.take(1, **FAILING)
    await one.judge()
    await one.monitor.contents.write()
    spans = [S(trace_id=trace(1, HIGH), span_id=span(9), parent_id=span(2), name="find", attributes={
        "langfuse.observation.type": "tool", "langfuse.observation.output": "late"})]  # fmt: skip
    await one.monitor.intake.consume(request(spans))
    await one.judge()
    await later(one)
    assert [call["name"] for call in (await case(one, 1))["tools_used"]] == ["find"]


@pytest.mark.parametrize(
    ("keep", "more", "message"),
    [
        ({"failed": "25h"}, {}, "contents stay no longer than verdicts"),
        ({"failed": "0s", "passed": 0.1}, {}, "nothing is kept with failed: 0s"),
        ({"passed": 0.1}, {"api": {"contents": "never"}}, "forbids to keep contents"),
        ({"passed": 2}, {}, "passed"),
        ({"redact": ["name"]}, {}, "redact"),
        ({"redact_patterns": ["("]}, {}, "RE2"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused_with_a_remedy(still, keep, more, message):
    with pytest.raises(ConfigError, match=message):
        still(keep, **more)


def test_contents_may_stay_as_long_as_scores_of_others_keep_verdicts(configured):
    reported = {"metrics": [{"id": "m", "reported": "helpful", "good": 0.9}]}
    langfuse = {"base_url": "http://langfuse.invalid", "public_key": "a", "secret_key": "b"}
    more = {"rubrics": {"own": reported}, "sinks": {"langfuse": langfuse}}
    kept = configured(store={"keep_contents": {"failed": "6d"}}, **more)
    assert (str(kept.kept_for), str(kept.contents_kept_for)) == ("7d", "6d")
    with pytest.raises(ConfigError, match=r"contents stay no longer than verdicts \(7d\)"):
        configured(store={"keep_contents": {"failed": "8d"}}, **more)


async def test_where_nobody_may_see_contents_none_are_kept(still, tmp_path):
    one = still(api={"contents": "never"})
    await one.take(1, **FAILING)
    await one.judge()
    await later(one)
    assert on_disk(tmp_path / "s.sqlite") == 0
    assert "contents being kept" not in [part.name for part in memory_bound(one.monitor.config)]


def test_every_text_of_a_span_and_of_a_record_is_looked_through_and_what_is_none_stays():
    mail = "ann@example.com"
    raw = RawSpan(
        trace_id="00", span_id="01", parent_id=None, name=mail, start_ns=1, end_ns=2, status_message=mail,
        attributes={"a": mail, "b": [mail, 1, None, {mail: mail}], "c": mail.encode(), "d": 1.5, "e": True},
        resource={"r": mail}, events=(RawEvent(name=mail, time_ns=3, attributes={"x": mail}),),
    )  # fmt: skip
    record = RawLogRecord(trace_id="00", span_id="01", time_ns=4, body={"x": [mail]}, attributes={"y": mail})
    found = redacted(PackedPart([raw], [record]), redacting(Redaction(("email",))))
    assert mail not in repr(found)
    (packed,) = unpack(pack([found], 10_000) or b"")
    assert packed == found
    assert packed.spans[0].attributes["b"] == ["[email]", 1, None, {"[email]": "[email]"}]
    assert (packed.spans[0].attributes["d"], packed.spans[0].attributes["e"]) == (1.5, True)
    assert pack([found] * 9, 20) is None


def test_a_large_image_that_is_too_much_takes_no_memory_of_its_own():
    image = random.Random(1).randbytes(8 * 2**20)
    tracemalloc.start()
    try:
        assert pack([image], MOST_PACKED) is None
        assert tracemalloc.get_traced_memory()[1] < 2 * MOST_PACKED
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("body", [b"", b"spans", pack([], 100)[:-3], pack([([1], [])], 100), pack([([{}], [])], 100)])
def test_bytes_that_are_no_packed_spans_are_refused(body):
    with pytest.raises(PackedSpansError):
        list(unpack(body))
