"""Listings of observations: windows without gaps, pages to their end, less where a query costs too much."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sidejudge.integrations.langfuse import legacy, observations
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.observations import SMALLEST_NS, TraceTooLarge, Window
from tests.fakes.langfuse import server as faults
from tests.fakes.langfuse.observations import Observations, at_ns, observations_of
from tests.fakes.langfuse.server import FakeLangfuse, Mode, only

SECOND = 10**9
START_NS = 1_795_000_000 * SECOND
HOUR = Window(from_ns=START_NS, to_ns=START_NS + 3600 * SECOND)


@pytest.fixture(params=[Mode.V3, Mode.DUAL], ids=lambda mode: mode.value)
def fake(request):
    with FakeLangfuse(request.param, parts=[Observations.part]) as server:
        yield server


def put(fake: FakeLangfuse, *starts_ns: int, **more: Any) -> None:
    for number, start_ns in enumerate(starts_ns):
        at = at_ns(start_ns)
        row = {"id": f"{number + 1:016x}", "traceId": f"{number + 1:032x}", "startTime": at, "endTime": at, **more}
        observations_of(fake).put(row)


async def listed(fake: FakeLangfuse, client: Any, window: Window) -> list[str]:
    pages = legacy.pages if fake.mode is Mode.V3 else observations.pages
    return [row["traceId"] async for page in pages(client(), window) for row in page]


async def test_two_windows_that_touch_leave_no_gap_and_list_nothing_twice(fake, client):
    put(fake, *(START_NS + ms * 10**6 for ms in range(6)))
    middle = START_NS + 3 * 10**6
    for cut in (middle, middle - 400_000):
        first = await listed(fake, client, Window(from_ns=START_NS, to_ns=cut))
        second = await listed(fake, client, Window(from_ns=-(-cut // 10**6) * 10**6, to_ns=START_NS + SECOND))
        assert sorted([*first, *second]) == [f"{n:032x}" for n in range(1, 7)]


async def test_a_window_that_costs_too_much_is_read_in_halves(fake, client):
    put(fake, *(START_NS + n * 100 * SECOND for n in range(30)))
    path = "/traces" if fake.mode is Mode.V3 else "/v2/observations"
    ends = ("fromTimestamp", "toTimestamp") if fake.mode is Mode.V3 else ("fromStartTime", "toStartTime")

    def dear(request: faults.Request) -> faults.Act | None:
        low, high = (observations.instant_ns(request.params[end]) or 0 for end in ends)
        return faults.resources()(request) if high - low > 500 * SECOND else None

    fake.standing_fault = only("GET", path, dear)
    assert sorted(await listed(fake, client, HOUR)) == [f"{n:032x}" for n in range(1, 31)]


async def test_what_costs_too_much_however_little_is_asked_for_is_an_error(fake, client):
    fake.standing_fault = faults.resources()
    with pytest.raises(LangfuseError, match="too many resources"):
        await listed(fake, client, Window(from_ns=START_NS, to_ns=START_NS + 4 * SMALLEST_NS))


async def test_contents_of_a_trace_beyond_what_is_held_are_not_read_on(client):
    with FakeLangfuse(Mode.DUAL, parts=[Observations.part]) as fake:
        for number in range(300):
            at = at_ns(START_NS)
            row = {"id": f"{number + 1:016x}", "traceId": "1" * 32, "startTime": at, "endTime": at}
            observations_of(fake).put({**row, "input": "x" * 200_000})
        access = client().access
        made = type(access)(base_url=fake.base_url, public_key=access.public_key, secret_key=access.secret_key)
        async with observations.Langfuse(made, budget=client().budget, timeout_s=30) as langfuse:
            with pytest.raises(TraceTooLarge):
                await observations.of_trace(langfuse, "1" * 32)
        assert len(fake.requested("GET", "/v2/observations")) == 2


async def test_a_sweep_ends_at_one_time_whatever_is_written_while_it_is_read(fake, client):
    put(fake, *(START_NS + n * SECOND for n in range(2500 if fake.mode is Mode.DUAL else 250)))
    await listed(fake, client, HOUR)
    path, name = ("/traces", "toTimestamp") if fake.mode is Mode.V3 else ("/v2/observations", "toStartTime")
    requested = fake.requested("GET", path)
    assert len(requested) > 2
    assert len({request.params[name] for request in requested}) == 1


@pytest.mark.parametrize("fake", [Mode.V3], indirect=True, ids=lambda mode: mode.value)
async def test_deep_pages_of_the_old_listing_are_not_asked_for_for_they_bring_a_server_down(fake, client):
    put(fake, *(START_NS + n * SECOND // 2 for n in range(5200)))
    given = client()
    async with observations.Langfuse(given.access, budget=given.budget, timeout_s=30) as langfuse:
        found = {row["traceId"] async for page in legacy.pages(langfuse, HOUR) for row in page}
    assert len(found) == 5200
    assert max(int(request.params["page"]) for request in fake.requested("GET", "/traces")) <= 50


@pytest.mark.parametrize("fake", [Mode.V3], indirect=True, ids=lambda mode: mode.value)
@pytest.mark.parametrize(("count", "gone", "at"), [(350, 1, 2), (350, 130, 3), (250, 60, 3), (201, 1, 3), (350, 99, 4)])
async def test_traces_that_are_deleted_while_pages_are_read_hide_no_other(fake, client, count, gone, at):
    put(fake, *(START_NS + n * SECOND for n in range(count)))

    def deletes(request: faults.Request) -> None:
        if request.params["page"] == str(at) and len(observations_of(fake).held) == count:
            del observations_of(fake).held[:gone]

    fake.standing_fault = only("GET", "/traces", deletes)
    found = await listed(fake, client, HOUR)
    assert {f"{n + 1:032x}" for n in range(gone, count)} <= set(found)
    assert len(fake.requested("GET", "/traces")) < 12


@pytest.mark.parametrize("fake", [Mode.V3], indirect=True, ids=lambda mode: mode.value)
async def test_traces_that_come_while_pages_are_read_have_none_read_again(fake, client):
    put(fake, *(START_NS + n * SECOND for n in range(250)))
    fresh = (f"{number:032x}" for number in range(1000, 10**6))
    fake.standing_fault = only(
        "GET", "/traces", lambda _: put(fake, START_NS + 1000 * SECOND, traceId=next(fresh), id=next(fresh)[-16:])
    )
    await listed(fake, client, HOUR)
    assert [request.params["page"] for request in fake.requested("GET", "/traces")] == ["1", "2", "3"]


async def test_an_answer_that_breaks_off_ends_a_listing_and_is_not_taken_for_a_window_too_large(fake, client):
    put(fake, START_NS)
    fake.standing_fault = faults.resets(50)
    with pytest.raises(LangfuseError):
        await listed(fake, client, HOUR)
    assert len(fake.requests) == 1


@pytest.mark.parametrize("fake", [Mode.V3], indirect=True, ids=lambda mode: mode.value)
async def test_a_trace_is_read_whole_by_the_old_read_and_an_answer_without_rows_is_broken(fake, client):
    put(fake, START_NS)
    assert [row["id"] for row in await legacy.of_trace(client(), f"{1:032x}")] == [f"{1:016x}"]
    fake.fails(lambda _: faults.answer({"id": f"{1:032x}"}))
    with pytest.raises(LangfuseError) as raised:
        await legacy.of_trace(client(), f"{1:032x}")
    assert raised.value.perhaps_its


@pytest.mark.parametrize("fake", [Mode.V3], indirect=True, ids=lambda mode: mode.value)
async def test_a_list_whose_length_changes_with_every_page_comes_to_its_end(fake, client):
    put(fake, *(START_NS + n * SECOND for n in range(250)))
    asked = iter(range(10**6))

    def counts(request: faults.Request) -> faults.Act:
        body = json.loads(fake._act(request).body)
        body["meta"]["totalItems"] -= next(asked) % 2
        return faults.answer(body)

    fake.standing_fault = only("GET", "/traces", counts)
    assert len(set(await listed(fake, client, HOUR))) == 250


@pytest.mark.parametrize("fake", [Mode.V3], indirect=True, ids=lambda mode: mode.value)
async def test_a_proxy_that_knows_no_such_page_does_not_say_that_a_trace_is_gone(fake, client):
    put(fake, START_NS)
    assert await legacy.of_trace(client(), "f" * 32) == []
    fake.fails(lambda _: faults.page(404))
    with pytest.raises(LangfuseError):
        await legacy.of_trace(client(), f"{1:032x}")


async def test_no_listing_is_without_a_range_for_operators_may_refuse_it(fake, client):
    put(fake, START_NS)
    await listed(fake, client, HOUR)
    ends = {"fromTimestamp", "toTimestamp"} if fake.mode is Mode.V3 else {"fromStartTime", "toStartTime"}
    path = "/traces" if fake.mode is Mode.V3 else "/v2/observations"
    assert fake.requested("GET", path)
    assert all(ends <= request.params.keys() for request in fake.requested("GET", path))


async def test_whether_anything_is_shown_that_began_before(fake, client):
    put(fake, START_NS, START_NS + SECOND)
    shown = [
        await observations.anything_before(client(), START_NS + later_ns, v2=fake.mode is not Mode.V3)
        for later_ns in (-SECOND, 0, 10**6, SECOND)
    ]
    assert shown == [False, False, True, True]


class Asked:
    """A server that refuses every listing as too expensive, and has one row of anything else; ``asked`` are queries."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def get(self, path: str, query: dict[str, Any]) -> Any:
        self.asked.append((path, dict(query)))
        if query["fields"] == observations.LISTED:
            raise LangfuseError(LangfuseErrorKind.TOO_EXPENSIVE)
        return {"data": [{"traceId": "t"}]}

    async def has(self, path: str, query: dict[str, Any]) -> bool:
        return bool(await self.get(path, query))


async def test_a_window_of_a_second_is_not_halved_any_more():
    server = Asked()
    with pytest.raises(LangfuseError):
        [_ async for _ in observations.pages(server, Window(from_ns=START_NS, to_ns=START_NS + 4 * SECOND))]
    widths = [
        (observations.instant_ns(query["toStartTime"]) - observations.instant_ns(query["fromStartTime"])) / SECOND
        for _, query in server.asked
        if query["limit"] == 1
    ]
    assert widths == [4, 2, 1]


async def test_whether_there_is_anything_costs_one_row():
    server = Asked()
    shown = [await observations.trace_exists(server, trace, v2=True) for trace in ("t", "u")]
    assert shown == [True, False], "a server may ignore what was asked for"
    assert await observations.trace_exists(server, "a/b", v2=False)
    for v2 in (True, False):
        assert await observations.anything_before(server, START_NS, v2=v2)
    since, until = "1970-01-01T00:00:00.000Z", at_ns(START_NS)
    assert server.asked == [
        ("v2/observations", {"traceId": "t", "limit": 1, "fields": "core"}),
        ("v2/observations", {"traceId": "u", "limit": 1, "fields": "core"}),
        ("traces/a%2Fb", {"fields": "core"}),
        ("v2/observations", {"fromStartTime": since, "toStartTime": until, "limit": 1, "fields": "core"}),
        ("traces", {"fromTimestamp": since, "toTimestamp": until, "limit": 1, "fields": "core"}),
    ]


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_223_026_226_420_992, "2026-11-21T01:03:46.226Z"),
        (1_795_223_026_999_999_999, "2026-11-21T01:03:46.999Z"),
        (7_258_118_400_001_000_000, "2200-01-01T00:00:00.001Z"),
    ],
)
def test_times_are_written_to_the_millisecond_and_read_again(at, written):
    assert observations.instant(at) == written
    assert observations.instant_ns(written) == at // 10**6 * 10**6


@pytest.mark.parametrize(
    ("stated", "at"),
    [
        ("2026-11-21T02:03:46.226+01:00", 1_795_223_026_226_000_000), ("2026-11-21T01:03:46Z", 1_795_223_026 * SECOND),
        ("2026-11-21T01:03:46." + "0" * 19 + "Z", 1_795_223_026 * SECOND),
        ("2026-11-21T01:03:46." + "0" * 20 + "Z", None), ("2300-01-01T00:00:00Z", None),
        ("1969-12-31T23:59:59Z", None), ("", None), ("now", None), (1_795_223_026, None), (None, None),
    ],
)  # fmt: skip
def test_what_is_no_time_of_a_row_is_none(stated, at):
    assert observations.instant_ns(stated) == at
