"""The gate: who may send, how much, and what a stranger is told."""

from __future__ import annotations

import pytest

from sidejudge.integrations.otlp.server.admission import Admission
from sidejudge.integrations.otlp.server.response import Refusal

KNOWN = {"tokens": ["s3cret", "other"], "users": {"pk-lf": "sk:lf"}}


def test_without_anything_configured_everybody_may_send():
    for _ in range(1000):
        Admission().admit(b"", "1.2.3.4")


@pytest.mark.parametrize(
    "authorization",
    [b"Bearer s3cret", b"bearer other", b"BEARER s3cret ", b"Basic cGstbGY6c2s6bGY=", b"basic  cGstbGY6c2s6bGY="],
)
def test_whoever_is_known_may_send(authorization):
    Admission(**KNOWN).admit(authorization, "1.2.3.4")


@pytest.mark.parametrize(
    "authorization",
    [b"", b"Bearer", b"Bearer ", b"Bearer s3cre", b"Bearer s3crett", b"Bearer S3CRET", b"Basic s3cret", b"s3cret",
     b"Bearer cGstbGY6c2s6bGY=", b"Basic cGstbGY6", b"\xff\xfe", b"Bearer s3cret, other"],
)  # fmt: skip
def test_whoever_is_not_known_is_refused_without_a_hint(authorization):
    with pytest.raises(Refusal) as caught:
        Admission(**KNOWN).admit(authorization, "1.2.3.4")
    refusal = caught.value
    assert (refusal.status, dict(refusal.headers)[b"www-authenticate"]) == (401, b'Bearer, Basic realm="sidejudge"')
    assert "s3cret" not in str(refusal)


def test_a_sender_may_send_two_seconds_worth_at_once_and_then_keeps_its_pace():
    now = 0.0
    gate = Admission(requests_per_second=4, clock=lambda: now)
    for _ in range(8):
        gate.admit(b"", "a")
    with pytest.raises(Refusal) as caught:
        gate.admit(b"", "a")
    assert (caught.value.status, caught.value.retry_after_s) == (429, 0.25)
    gate.admit(b"", "b")  # another sender is not held up
    for _ in range(20):
        now += 0.25
        gate.admit(b"", "a")
    now += 100
    for _ in range(8):
        gate.admit(b"", "a")
    with pytest.raises(Refusal):
        gate.admit(b"", "a")


def test_senders_that_say_who_they_are_are_told_apart_by_that_and_not_by_their_address():
    gate = Admission(**KNOWN, requests_per_second=0.4, clock=lambda: 0.0)
    gate.admit(b"Bearer s3cret", "proxy")
    gate.admit(b"Bearer other", "proxy")
    with pytest.raises(Refusal):
        gate.admit(b"Bearer other", "elsewhere")


def test_ever_new_senders_do_not_take_ever_more_memory():
    gate = Admission(requests_per_second=1, clock=lambda: 0.0)
    for number in range(30_000):
        gate.admit(b"", f"10.0.{number}")
    assert len(gate._senders) == 10_000
