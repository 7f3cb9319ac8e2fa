"""Sending: batches within what Langfuse takes, in the body that it takes."""

from __future__ import annotations

from sidejudge.integrations.langfuse.client import encoded
from sidejudge.integrations.langfuse.sending import BATCH, ScoreSender, Writing
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
