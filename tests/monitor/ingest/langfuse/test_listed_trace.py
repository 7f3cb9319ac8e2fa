"""What listings show of a trace: when it has settled, what its root says of it, and which rows are a root."""

from __future__ import annotations

from typing import Any

import pytest

from sidejudge.integrations.langfuse.normalise import span_id
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace, all_own, excluded, is_root, trace_of
from tests.fakes.langfuse.observations import at_ns

SECOND = 10**9
START_NS = 1_795_000_000 * SECOND
NOW_NS = START_NS + 100 * SECOND


def row(at_s: float = 0, *, name: str = "root", parent: str | None = None, **more: Any) -> dict[str, Any]:
    """A row that began so many seconds after the start and took one."""
    begun = START_NS + int(at_s * SECOND)
    return {
        "id": f"{name}-{at_s}", "traceId": "t", "name": name, "parentObservationId": parent, "type": "SPAN",
        "startTime": at_ns(begun), "endTime": at_ns(begun + SECOND), **more,
    }  # fmt: skip


def listed(*rows: dict[str, Any], now_ns: int = NOW_NS, **more: Any) -> ListedTrace:
    found = ListedTrace.of("t", now_ns, **more)
    found.add(rows, now_ns)
    return found


@pytest.mark.parametrize(
    ("shown", "root"),
    [
        ({}, True), ({"parentObservationId": ""}, True), ({"parentObservationId": "p"}, False),
        ({"parentObservationId": "p", "isRootObservation": True}, True),
        ({"parentObservationId": "p", "isRootObservation": "yes"}, False),
        ({"parentObservationId": "p", "isRootObservation": 1}, False),
        ({"endTime": None}, False), ({"endTime": ""}, False), ({"endTime": None, "type": "EVENT"}, True),
        ({"endTime": None, "type": "EVENT", "parentObservationId": "p"}, False),
    ],
)  # fmt: skip
def test_a_root_has_ended_or_is_an_event(shown, root):
    assert is_root({**row(), **shown}) is root
    assert is_root({"id": "a", "startTime": at_ns(START_NS)}), "a listing of the old reads has no ends"


@pytest.mark.parametrize(
    ("rows", "times"),
    [
        ([row(5), row(2), row(3)], (2, 5, 6, 6)),
        ([row(2, endTime=None)], (2, 2, 2, 2)),
        ([row(2, endTime="soon", updatedAt=at_ns(START_NS + 9 * SECOND))], (2, 2, 2, 9)),
        ([row(2, createdAt=at_ns(START_NS + 8 * SECOND), updatedAt=at_ns(START_NS + 7 * SECOND))], (2, 2, 3, 8)),
        ([row(2, startTime=None, endTime=None)], (100, 100, 100, 100)),
        ([row(2, endTime=at_ns(START_NS + SECOND)), row(4)], (2, 4, 5, 5)),
    ],
)  # fmt: skip
def test_times_of_a_trace_are_those_of_its_rows(rows, times):
    found = listed(*rows)
    shown = (found.start_ns, found.last_ns, found.end_ns, found.written_ns)
    assert tuple((each - START_NS) / SECOND for each in shown) == times
    assert found.spans == {bytes.fromhex(span_id(each["id"])) for each in rows}


@pytest.mark.parametrize(
    ("rows", "from_s", "to_s"),
    [
        ([row(20), row(30)], 10, 41),
        ([row(20, parentObservationId="p"), row(30)], 10, 41),
        ([row(20, parentObservationId="p"), row(30, parentObservationId="p")], None, 41),  # begun before
        ([row(20, endTime=None)], None, 30),
    ],
)
def test_where_rows_of_a_trace_are_looked_for(rows, from_s, to_s):
    window = listed(*rows).around(10 * SECOND)
    shown_s = None if from_s is None else START_NS + from_s * SECOND
    assert (window.from_ns, window.to_ns) == (shown_s or 0, START_NS + to_s * SECOND)


@pytest.mark.parametrize(
    ("more", "changed"),
    [
        (row(1), False),  # seen before
        (row(1, updatedAt=at_ns(START_NS + 30 * SECOND)), True),
        (row(1, updatedAt=at_ns(START_NS + 2 * SECOND)), False),  # as its end
        (row(0), True),  # another one
    ],
)
def test_a_trace_has_changed_where_rows_were_added_or_written_again(more, changed):
    found = listed(row(1))
    found.add([more], NOW_NS + 7)
    assert found.changed_ns == NOW_NS + 7 * changed


@pytest.mark.parametrize(
    ("rooted", "written_s", "behind_s", "retry_s", "settled_at_s"),
    [
        (True, 0, 0, 0, 10), (True, -20, 0, 0, 0), (True, -20, 15, 0, 5), (True, 50, 0, 0, 10), (False, 0, 0, 0, 60),
        (True, 0, 0, 12, 12), (True, None, 30, 0, 10),
    ],
)  # fmt: skip
def test_when_a_trace_has_settled(rooted, written_s, behind_s, retry_s, settled_at_s):
    found = ListedTrace.of("t", NOW_NS)
    found.rooted, found.retry_ns = rooted, NOW_NS + retry_s * SECOND
    found.written_ns = 0 if written_s is None else NOW_NS + written_s * SECOND
    times = (10 * SECOND, 60 * SECOND, behind_s * SECOND)
    assert found.settled(NOW_NS + settled_at_s * SECOND, *times)
    assert not settled_at_s or not found.settled(NOW_NS + settled_at_s * SECOND - 1, *times)


def test_without_a_root_it_settles_no_sooner_than_with_one():
    found = ListedTrace.of("t", NOW_NS)
    assert not found.settled(NOW_NS + 59, 60, 10, 0)
    assert found.settled(NOW_NS + 60, 60, 10, 0)


def test_it_has_grown_where_a_row_was_not_taken():
    one, two = (bytes.fromhex(span_id(each["id"])) for each in (row(1), row(2)))
    assert listed(row(1)).grown
    assert not listed(row(1), taken=frozenset((one, two))).grown
    assert listed(row(1), row(2), taken=frozenset((one,))).grown


@pytest.mark.parametrize(
    ("rows", "name", "environment"),
    [
        ([row(0, name="a", traceName="t1", environment="dev")], "t1", "dev"),
        ([row(0, name="a", environment="default")], "a", None),
        ([row(1, name="late", traceName="t2", environment="prod"), row(0, name="first", environment="dev")],
         "t2", "dev"),
        ([row(0, name="first", environment="dev"), row(1, name="late", traceName="t2")], "t2", "dev"),
        ([row(0, name="first", environment="dev"), row(1, name="late", environment="abc")], "first", "dev"),
        ([row(0, name="first"), row(0, name="same")], "same", None),
        ([row(0, name="step", parent="p", environment="b"), row(1, name="step", parent="p", environment="a")],
         None, "a"),
        ([row(0, name="step", parent="p", traceName="t1"), row(1, name="step", parent="p", traceName="t2")],
         "t1", None),
        ([row(0, name="a", traceName=3, environment=7)], "a", None),
    ],
)  # fmt: skip
def test_the_first_root_speaks_for_the_trace(rows, name, environment):
    case = listed(*rows).case()
    assert (case.name, case.environment, case.case_id) == (name, environment, "t")


def test_errors_sessions_and_tags_are_those_of_any_row():
    found = listed(
        row(0, tags=["a", "b"], sessionId=""), row(1, parent="p", tags=["b", 3], sessionId="s1", level="ERROR"),
        row(2, tags="no list", sessionId="s2", level="DEFAULT"), row(3, tags=[f"t{n}" for n in range(100)]),
    )  # fmt: skip
    assert found.session_id == "s1"
    assert (found.case().tags[:3], len(found.case().tags)) == (("a", "b", "3"), 50)
    assert found.case().error is not None
    assert listed(row(0)).case().error is None
    many = listed(*(row(n, environment=f"e{n}") for n in range(80)))
    assert len(many.environments) == 50


@pytest.mark.parametrize(
    ("rows", "out"),
    [
        ([row(0)], False), ([row(0, environment="production")], False),
        ([row(0, environment="langfuse-llm-as-a-judge")], True),
        ([row(0, environment="production"), row(1, environment="sdk-experiment")], True),
    ],
)  # fmt: skip
def test_evaluation_itself_is_left_out(rows, out):
    assert excluded(listed(*rows)) is out


@pytest.mark.parametrize(
    ("sent", "own"),
    [
        ([("sidejudge", "sidejudge")], True), ([("sidejudge", "x"), ("shop", "x")], False),
        ([("shop", "sidejudge.judge"), ("shop", "sidejudge.judge")], True), ([(3, "x")], False), ([], True),
    ],
)  # fmt: skip
def test_a_trace_is_our_own_where_all_of_its_spans_are(sent, own):
    spans = [
        RawSpan(
            trace_id="1" * 32, span_id="2" * 16, parent_id=None, name="a", start_ns=0, end_ns=0,
            resource={"service.name": service}, scope_name=scope,
        )
        for service, scope in sent
    ]  # fmt: skip
    assert all_own(spans) is own


@pytest.mark.parametrize(
    ("stated", "read"),
    [("t", "t"), ("x" * 800, "x" * 800), ("x" * 801, "x" * 800), ("a\ud800", "a?"), (3, ""), (None, "")],
)
def test_the_trace_of_a_row(stated, read):
    assert trace_of({"traceId": stated}) == read
