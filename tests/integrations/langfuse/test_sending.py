"""Sending: batches within what Langfuse takes, in the body that it takes."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sidejudge.integrations.langfuse.client import LangfuseReply, encoded
from sidejudge.integrations.langfuse.errors import LangfuseError, read_refusal
from sidejudge.integrations.langfuse.sending import (
    BATCH,
    EVENTS,
    ScoreSender,
    SendResult,
    Writing,
    _groups,
    is_too_short,
    wants,
)
from tests.fakes.langfuse.server import Mode

LIMIT = 1_000_000


def writings(bodies: list[dict]) -> list[Writing]:
    return [Writing(body, 1_795_000_000_000) for body in bodies]


def scores(count: int, *, comment: int = 0) -> list[dict]:
    return [
        {
            "id": f"s{number}", "traceId": "t", "name": "n", "value": number, "dataType": "NUMERIC",
            "comment": "c" * comment,
        }
        for number in range(count)
    ]  # fmt: skip


async def test_no_body_exceeds_what_is_taken_however_large_scores_are(fake, client):
    fake.mode = Mode.NEW
    outcome = await ScoreSender(client(), arrays=True).send(writings(scores(40, comment=200_000)))
    assert sorted(outcome.taken) == list(range(40))
    sent = [request.raw for request in fake.requested("POST", "/scores")]
    assert max(map(len, sent)) < LIMIT
    assert len(sent) == 10


async def test_an_array_holds_as_many_as_the_sdk_sends(fake, client):
    fake.mode = Mode.NEW
    await ScoreSender(client(), arrays=True).send(writings(scores(2 * BATCH + 1)))
    assert [len(request.body) for request in fake.requested("POST", "/scores")] == [BATCH, BATCH, 1]


async def test_a_server_that_refuses_arrays_stores_nothing_of_one_and_gets_each_score_alone_from_then_on(fake, client):
    fake.mode = Mode.DUAL
    sender = ScoreSender(client(), arrays=True)
    outcome = await sender.send(writings(scores(20)))
    assert (sorted(outcome.taken), sender.arrays) == (list(range(20)), False)
    assert len(fake.scores.stored()) == 20
    assert [isinstance(request.body, list) for request in fake.requested("POST", "/scores")] == [True] + [False] * 20


async def test_a_server_that_takes_only_arrays_is_found_out_too(fake, client):
    fake.mode = Mode.NEW
    refusal = {"expected": "array", "code": "invalid_type", "path": [], "message": "Invalid input: expected array"}
    fake.standing_fault = lambda request: None if isinstance(request.body, list) else _refused(refusal)
    sender = ScoreSender(client(), arrays=False)
    outcome = await sender.send(writings(scores(3)))
    assert (sorted(outcome.taken), sender.arrays) == ([0, 1, 2], True)


async def test_of_a_207_that_does_not_say_which_only_the_one_at_fault_is_refused(fake, client):
    fake.mode = Mode.NEW
    batch = scores(5)
    batch[3]["value"] = "no number"
    outcome = await ScoreSender(client(), arrays=True).send(writings(batch))
    assert sorted(outcome.taken) == [0, 1, 2, 4]
    assert list(outcome.refused) == [3]
    assert "expected number" in outcome.refused[3]


def _refused(issue):
    from tests.fakes.langfuse.server import invalid  # noqa: PLC0415  # only here

    return invalid(issue)


def test_what_is_measured_is_what_is_sent():
    assert len(encoded(scores(1))) == len(encoded(scores(1)[0])) + 2


def refusal(status: int, body: object = None) -> LangfuseError:
    return read_refusal(status, {}, b"<html>" if body is None else json.dumps(body).encode())


def _wants(kind: str) -> LangfuseError:
    return refusal(400, {"error": [{"code": "invalid_type", "expected": kind, "path": []}, {"path": ["name"]}]})


@dataclass
class Server:
    """Which bodies a server takes, how many scores in one, which it refuses, and the request at which it is away."""

    ways: frozenset[str] = frozenset({"array", "object"})
    most: int = 100
    bad: frozenset[str] = frozenset()
    away_at: int | None = None
    away: LangfuseError = field(default_factory=lambda: refusal(503, {"message": "away"}))
    stored: set[str] = field(default_factory=set)
    bodies: list[object] = field(default_factory=list)

    async def post(self, path: str, body: object) -> LangfuseReply:
        self.bodies.append(body)
        if len(self.bodies) - 1 == self.away_at:
            raise self.away
        if path == "ingestion":
            return self._events(body["batch"])
        return self._array(body) if isinstance(body, list) else self._object(body)

    def _events(self, batch) -> LangfuseReply:
        if "events" not in self.ways:
            raise refusal(404)
        self._measure([event["body"] for event in batch])
        good = [event for event in batch if event["body"]["id"] not in self.bad]
        self.stored |= {event["body"]["id"] for event in good}
        errors = [{"id": each["id"], "status": 400, "message": "bad"} for each in batch if each not in good]
        return LangfuseReply(207, {"successes": [{"id": each["id"], "status": 201} for each in good], "errors": errors})

    def _array(self, scores) -> LangfuseReply:
        if "array" not in self.ways:
            raise _wants("object")
        self._measure(scores)
        good = {each["id"] for each in scores} - self.bad
        self.stored |= good
        return LangfuseReply(202, {}) if len(good) == len(scores) else LangfuseReply(207, {"errors": [{}]})

    def _object(self, score) -> LangfuseReply:
        if "object" not in self.ways:
            raise _wants("array")
        self._measure([score])
        if score["id"] in self.bad:
            raise refusal(400, {"message": "bad", "error": []})
        self.stored.add(score["id"])
        return LangfuseReply(200, {})

    def _measure(self, scores) -> None:
        if len(scores) > self.most or any(each["id"] in self.bad for each in scores if self.most == 1):
            raise refusal(413, {"message": "too large"})


def way(body) -> str:
    return "array" if isinstance(body, list) else "events" if "batch" in body else "object"


def ids(indices) -> set[str]:
    return {f"s{index}" for index in indices}


SERVERS = st.builds(
    Server,
    ways=st.sampled_from([frozenset({*way, *more}) for way in (["array"], ["object"]) for more in ([], ["events"])]),
    most=st.sampled_from([1, 2, 20, 100]),
    bad=st.frozensets(st.integers(0, 60)).map(lambda found: frozenset(ids(found))),
)
KNOWN_WAYS, BY_EVENTS = frozenset({"events", "object"}), {"arrays": False, "events": True}
BELIEFS = st.fixed_dictionaries({"arrays": st.booleans(), "events": st.booleans()})


@given(server=SERVERS, beliefs=BELIEFS, count=st.integers(0, 60))
@example(server=Server(frozenset({"array"}), most=1), beliefs={"arrays": True, "events": False}, count=2)
@example(server=Server(ways=KNOWN_WAYS, most=1, bad=frozenset({"s1"})), beliefs=BY_EVENTS, count=3)
@example(server=Server(), beliefs=BY_EVENTS, count=2 * EVENTS)
@example(server=Server(ways=KNOWN_WAYS, most=1), beliefs=BY_EVENTS, count=2)
async def test_whatever_a_server_takes_and_was_believed_to_take_every_good_score_is_taken_once(server, beliefs, count):
    sender = ScoreSender(server, **beliefs)
    outcome = await sender.send(writings(scores(count)))
    assert outcome.error is None
    assert len(outcome.taken) == len(set(outcome.taken))
    assert ids(outcome.refused) == ids(range(count)) & server.bad
    assert ids(outcome.taken) == server.stored == ids(range(count)) - server.bad
    server.bodies.clear()
    await sender.send(writings(scores(count)))
    assert {way(body) for body in server.bodies} <= server.ways, "it remembers what is taken"


@given(server=SERVERS, beliefs=BELIEFS, count=st.integers(1, 60), away_at=st.integers(0, 30))
async def test_what_is_away_is_asked_once_and_no_more_and_what_was_taken_before_stands(server, beliefs, count, away_at):
    server.away_at = away_at
    outcome = await ScoreSender(server, **beliefs).send(writings(scores(count)))
    if len(server.bodies) <= away_at:
        return
    assert outcome.error is server.away
    assert len(server.bodies) == away_at + 1
    assert ids(outcome.taken) <= server.stored
    assert ids(outcome.refused) <= server.bad
    assert not set(outcome.taken) & set(outcome.refused)


@pytest.mark.parametrize(
    ("ways", "most", "count", "lengths"),
    [
        ("array events", 100, 2 * BATCH + 1, [BATCH, BATCH, 1]),
        ("events object", 100, 2 * EVENTS + 1, [EVENTS, EVENTS, 1]),
        ("array object", 1, 3, [3, 1, 1, 1]),  # too large together, so each goes alone
        ("events object", 1, 3, [3, 1, 1, 1]),
    ],
)
async def test_a_server_that_is_known_is_asked_in_one_way_as_seldom_as_it_allows(ways, most, count, lengths):
    server = Server(frozenset(ways.split()), most=most)
    await ScoreSender(server, arrays="array" in ways, events="events" in ways).send(writings(scores(count)))
    assert [len(body if "array" in ways else body["batch"]) for body in server.bodies] == lengths


async def test_an_event_that_is_neither_taken_nor_refused_is_an_outage_of_its_server():
    class Half(Server):
        def _events(self, batch) -> LangfuseReply:
            states = [
                {"id": event["id"], "status": status} for event, status in zip(batch, (201, 400, 500), strict=True)
            ]
            return LangfuseReply(207, {"successes": states[:1], "errors": states[1:]})

    outcome = await ScoreSender(Half(), arrays=False, events=True).send(writings(scores(3)))
    assert (outcome.taken, list(outcome.refused)) == ([0], [1])
    assert str(outcome.error) == "server error (HTTP 207): it neither took nor refused some scores of a batch"


async def test_ids_of_events_grow_though_the_clock_stands_or_is_set_back():
    server, times = Server(frozenset({"events"})), itertools.chain([7, 7, 7, 5], itertools.repeat(9))
    sender = ScoreSender(server, arrays=False, events=True, clock_ns=lambda: next(times))
    for _ in range(6):
        await sender.send(writings(scores(1)))
    names = [body["batch"][0]["id"] for body in server.bodies]
    assert [int(name.removesuffix("-s0")) for name in names] == [7, 8, 9, 10, 11, 12]
    assert names == sorted(names), "as texts, too"


@given(lengths=st.lists(st.sampled_from([0, 1_000, 200_000, 449_700, 899_700, 2_000_000]), max_size=90))
def test_bodies_are_as_few_as_go_in_order_within_what_is_taken(lengths):
    scores = [{"id": str(index), "comment": "c" * length} for index, length in enumerate(lengths)]
    sizes = [len(encoded(score)) + 200 for score in scores]
    groups = _groups(scores, range(len(scores)), EVENTS)
    assert list(itertools.chain(*groups)) == list(range(len(scores)))
    for group in groups:
        assert len(group) == 1 or (len(group) <= EVENTS and 2 + sum(sizes[index] for index in group) <= 900_000)
    for group, (first, *_) in itertools.pairwise(groups):
        assert len(group) == EVENTS or 2 + sum(sizes[index] for index in [*group, first]) > 900_000


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (_wants("object"), "object"),
        (_wants("array"), "array"),
        (refusal(400, {"error": [{"code": "too_small", "path": []}]}), "longer"),
        (refusal(500, {"error": [{"code": "too_small", "expected": "array", "path": []}]}), None),
        (refusal(400, {"error": [{"code": "too_small", "expected": "array", "path": [0]}]}), None),
        (refusal(400, {"error": [7]}), None),
        (refusal(400, {"error": [7, {"code": "too_small", "path": []}]}), None),
        (refusal(400, {"error": [{"code": "too_small", "path": []}, 7]}), "longer"),
        (refusal(400, {"error": []}), None),
        (refusal(400, {"error": "array"}), None),
        (refusal(400, []), None),
        (refusal(400), None),
    ],
)
def test_a_refusal_states_what_was_expected_as_a_whole(error, found):
    asked = {"object": wants(error, "object"), "array": wants(error, "array"), "longer": is_too_short(error)}
    assert [name for name, states in asked.items() if states] == ([found] if found else [])


OTHERWISE = [
    refusal(400), refusal(400, {"code": "blocked"}), refusal(403), refusal(405, {"message": "no"}),
    refusal(409, {"message": "no"}),
]  # fmt: skip
"""What no Langfuse answers to a score: something in between does."""


@pytest.mark.parametrize("error", OTHERWISE)
@pytest.mark.parametrize("way", ["array", "events", "object"])
async def test_what_answers_otherwise_than_langfuse_does_refuses_no_score(error, way):
    class Otherwise(Server):
        async def post(self, path: str, body: object) -> LangfuseReply:
            self.bodies.append(body)
            raise error

    server = Otherwise()
    outcome = await ScoreSender(server, arrays=way == "array", events=way == "events").send(writings(scores(40)))
    assert (outcome.taken, outcome.refused, outcome.doubtful, outcome.error) == ([], {}, {}, error)
    assert len(server.bodies) <= BATCH + 1, "one by one, and no more once as many as an array holds have failed"


@pytest.mark.parametrize("error", OTHERWISE)
@pytest.mark.parametrize("way", ["array", "events", "object"])
@given(blocked=st.sets(st.integers(0, 39), max_size=BATCH - 1))
async def test_what_fails_by_itself_while_others_are_taken_is_doubtful(error, way, blocked):
    class Between(Server):
        async def post(self, path: str, body: object) -> LangfuseReply:
            if any(f'"s{index}"' in json.dumps(body) for index in blocked):
                raise error
            return await super().post(path, body)

    server = Between(ways=frozenset({"array", "object", "events"}))
    outcome = await ScoreSender(server, arrays=way == "array", events=way == "events").send(writings(scores(40)))
    assert outcome.doubtful.keys() | outcome.refused.keys() == blocked
    assert (sorted(outcome.taken), outcome.refused, outcome.error) == (sorted({*range(40)} - blocked), {}, None)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"errors": [{"message": "expected number"}, {"message": "other"}]}, "refused: expected number"),
        ({"errors": [{"message": "m" * 400}]}, "refused: " + "m" * 291),
        *(({"errors": errors}, "refused: ") for errors in ([7], [{}], "no")),
        ({"rejected": 1}, "refused: "),
    ],
)
async def test_a_score_that_is_refused_bears_the_first_reason(body, reason):
    class Refusing(Server):
        def _array(self, scores) -> LangfuseReply:
            return LangfuseReply(207, body)

    outcome = await ScoreSender(Refusing(), arrays=True).send(writings(scores(1)))
    assert outcome == SendResult(refused={0: reason}, sent={0})
