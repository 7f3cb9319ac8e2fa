"""Post: what answers, and the lack of them, mean."""

from __future__ import annotations

import socket

import pytest

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.post import Poster
from tests.fakes.receiver import Act, receiving


@pytest.fixture
def fake():
    with receiving() as server:
        yield server


async def test_a_success_is_a_success_and_the_body_arrives(fake):
    await Poster(f"{fake.url}/hook").post(b'{"a": 1}', {"x-more": "yes"})
    (got,) = fake.got
    assert (got.path, got.json, got.headers["x-more"]) == ("/hook", {"a": 1}, "yes")
    assert got.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_what_may_pass_is_to_be_tried_again(fake, status):
    fake.act = lambda _: Act(status=status, body=b"busy\nnow")
    with pytest.raises(DestinationUnreachableError, match=f"it answered {status} .*: busy now"):
        await Poster(fake.url).post(b"{}")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422])
async def test_what_the_receiver_will_never_take_is_refused_with_its_words(fake, status):
    fake.act = lambda _: Act(status=status, body=b"invalid_payload")
    with pytest.raises(RefusedError, match=f"it answered {status} .*: invalid_payload"):
        await Poster(fake.url).post(b"{}")


@pytest.mark.parametrize("page", [b"\n<!DOCTYPE html><html><title>Sign in</title>", b"<HTML lang=en>" + b"x" * 5_000])
async def test_a_page_with_a_success_is_of_somebody_else_but_where_receivers_answer_with_pages(fake, page):
    fake.act = lambda _: Act(status=200, body=page, headers={"content-type": "text/html"})
    with pytest.raises(DestinationUnreachableError, match="it answered 200 with a page of HTML"):
        await Poster(fake.url).post(b"{}")
    await Poster(fake.url, pages=True).post(b"{}")
    fake.act = lambda _: Act(status=200, body=b"ok", headers={"content-type": "text/html"})  # as Slack does
    await Poster(fake.url).post(b"{}")
    assert {got.headers["accept-encoding"] for got in fake.got} == {"identity"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [(301, RefusedError), (308, RefusedError), *((s, DestinationUnreachableError) for s in (302, 303, 307))],
)
async def test_a_redirect_is_not_followed_and_only_one_for_good_is_a_refusal(fake, status, kind):
    fake.act = lambda _: Act(status=status, headers={"location": f"{fake.url}/elsewhere"})
    with pytest.raises(kind, match="names another address"):
        await Poster(fake.url).post(b"{}")
    assert len(fake.got) == 1


@pytest.mark.parametrize(("asked", "given"), [("7", 7.0), ("86400", 900.0)])
async def test_a_receiver_that_asks_for_time_is_given_it_up_to_a_quarter_of_an_hour(fake, asked, given):
    fake.act = lambda _: Act(status=503, headers={"retry-after": asked})
    with pytest.raises(DestinationUnreachableError) as caught:
        await Poster(fake.url).post(b"{}")
    assert caught.value.retry_after_s == given


async def test_a_receiver_that_hangs_is_given_up(fake):
    fake.act = lambda _: Act(hang=True)
    with pytest.raises(DestinationUnreachableError, match=r"no answer within 0\.2 s"):
        await Poster(fake.url, timeout_s=0.2).post(b"{}")


async def test_a_connection_that_breaks_is_said_to_break(fake):
    fake.act = lambda _: Act(reset=True)
    with pytest.raises(DestinationUnreachableError, match="the connection failed: "):
        await Poster(fake.url).post(b"{}")


async def test_nobody_listening_is_unreachable():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(DestinationUnreachableError, match="Connection refused"):
            await Poster(f"http://127.0.0.1:{bound.getsockname()[1]}/secret").post(b"{}")


@pytest.mark.parametrize(
    "repeated",
    [
        "no such hook: {url}",
        "Cannot POST {path}",
        '{{"status":404,"path":"{path}"}}',
        '{{"path":"{escaped}"}}',
        "no hook named secret-of-ours",
        "the key pass-phrase is unknown",
    ],
)
@pytest.mark.parametrize("status", [400, 500])
async def test_the_address_is_not_repeated_even_where_the_answer_does(fake, status, repeated):
    path = "/services/T000/B000/secret-of-ours?key=pass-phrase"
    url = fake.url + path
    stated = repeated.format(url=url, path=path, escaped=path.replace("/", "\\/"))
    fake.act = lambda _: Act(status=status, body=f"{stated} \x1b[31m {'x' * 9_000}".encode())
    with pytest.raises((RefusedError, DestinationUnreachableError)) as caught:
        await Poster(url).post(b"{}")
    assert "secret" not in caught.value.reason
    assert "phrase" not in caught.value.reason
    assert "T000" not in caught.value.reason
    assert "\x1b" not in caught.value.reason
    assert len(caught.value.reason) < 300
