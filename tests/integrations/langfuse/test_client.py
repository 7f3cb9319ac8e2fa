"""The client: what is sent, and what each way of going wrong is called."""

from __future__ import annotations

import pytest

from sidejudge.integrations.langfuse.client import Access, encoded
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from tests.fakes.langfuse import server as langfuse
from tests.fakes.langfuse.server import error

SCORE = {"id": "s1", "traceId": "a" * 32, "name": "qa_score", "value": 1, "dataType": "NUMERIC"}


@pytest.mark.parametrize(
    ("fault", "kind", "passing"),
    [
        (error(400, "Invalid request data"), LangfuseErrorKind.REFUSED, False),
        (error(401, "Invalid credentials."), LangfuseErrorKind.KEYS_REFUSED, False),
        (langfuse.suspended(), LangfuseErrorKind.FORBIDDEN, False),
        (error(404, "not here"), LangfuseErrorKind.NOT_FOUND, False),
        (langfuse.page(), LangfuseErrorKind.NOT_FOUND, False),
        (langfuse.gone(), LangfuseErrorKind.GONE, False),
        (langfuse.too_large(), LangfuseErrorKind.TOO_LARGE, False),
        (langfuse.resources(), LangfuseErrorKind.TOO_EXPENSIVE, True),
        (langfuse.Act(200, b'{"data":[' + b"[]," * 500_001 + b"0]}"), LangfuseErrorKind.TOO_EXPENSIVE, True),
        (langfuse.Act(200, b'{"data":[' + b"0," * 2_500_001 + b"0]}"), LangfuseErrorKind.TOO_EXPENSIVE, True),
        (langfuse.rate_limited(0), LangfuseErrorKind.RATE_LIMITED, True),
        (langfuse.store_away(), LangfuseErrorKind.SERVER_ERROR, True),
        (langfuse.database_away(), LangfuseErrorKind.SERVER_ERROR, True),
        (langfuse.proxy_page(), LangfuseErrorKind.SERVER_ERROR, True),
        (langfuse.login_page(), LangfuseErrorKind.NOT_LANGFUSE, True),
        (langfuse.hangs(), LangfuseErrorKind.TIMEOUT, True),
        (langfuse.resets(), LangfuseErrorKind.UNREACHABLE, True),
        (langfuse.resets(20), LangfuseErrorKind.UNREACHABLE, True),
    ],
)
async def test_each_way_of_going_wrong_has_its_name(fake, client, fault, kind, passing):
    fake.standing_fault = fault if callable(fault) else lambda _: fault
    with pytest.raises(LangfuseError) as refused:
        await client(timeout_s=0.3 if kind is LangfuseErrorKind.TIMEOUT else 30.0).post("scores", SCORE)
    assert (refused.value.kind, refused.value.kind.transient) == (kind, passing)
    assert "sk-lf" not in str(refused.value)


async def test_a_score_is_sent_and_found_again(fake, client):
    langfuse = client()
    assert (await langfuse.post("scores", SCORE)).body == {"id": "s1"}
    (found,) = (await langfuse.get("v3/scores", {"id": "s1", "fields": "subject"}))["data"]
    assert found["subject"] == {"kind": "trace", "id": "a" * 32}
    await langfuse.delete("scores", "s1")
    assert (await langfuse.get("v3/scores", {"id": "s1"}))["data"] == []


async def test_a_refusal_names_the_field_and_the_rule(client):
    with pytest.raises(LangfuseError, match="Invalid request data: value: Invalid input: expected number"):
        await client().post("scores", {**SCORE, "value": "much"})


async def test_a_redirection_is_not_followed_for_the_keys_would_follow_it(fake, client):
    fake.fails(lambda _: langfuse.Act(307, b"", {"location": "https://elsewhere.example/api/public/scores"}))
    with pytest.raises(LangfuseError, match=r"redirects to https://elsewhere\.example"):
        await client().post("scores", SCORE)
    assert len(fake.requests) == 1


async def test_a_limit_that_the_server_names_slows_all_requests_down(fake, client):
    fake.fails(langfuse.rate_limited(7, 30))
    one = client()
    with pytest.raises(LangfuseError) as refused:
        await one.get("v3/scores")
    assert (refused.value.retry_after_s, refused.value.per_minute) == (7, 30)
    assert one.budget.per_minute == 24
    assert one.budget.reserve() == pytest.approx(7, abs=1)


def test_keys_are_in_no_text_that_access_gives_of_itself():
    access = Access(base_url="https://x.example", public_key="pk-lf-1234", secret_key="sk-lf-secret")
    assert "lf-" not in f"{access!r} {access}"


def test_half_a_surrogate_pair_can_be_sent_and_nan_cannot():
    assert encoded({"comment": "\ud800"}) == b'{"comment":"\\ud800"}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        encoded({"value": float("nan")})
