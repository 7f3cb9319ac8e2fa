"""An agent behind HTTP: every form of answer, and every way not to give one, over a real socket."""

from __future__ import annotations

import asyncio

import pytest

from sidejudge.integrations.agents import AgentError, AgentReply, NoSuchAgentError, Request
from sidejudge.integrations.agents.http import MAX_ANSWER, HttpAgent
from tests.running import free_port


async def ask(url: str, text: object = "hi", limit_s: float = 20) -> AgentReply:
    async with HttpAgent(url, 2) as agent, asyncio.timeout(limit_s):
        return await agent.ask(Request(input=text, test_id="t-1", metadata={"team": "a"}))


async def refusal(url: str, text: object = "hi") -> AgentError:
    with pytest.raises(AgentError) as reported:
        await ask(url, text)
    return reported.value


async def test_the_test_is_posted_as_json_and_text_is_an_answer(fake) -> None:
    reply = await ask(fake.url + "/text", "héllo")
    assert fake.requested == [{"input": "héllo", "test_id": "t-1", "metadata": {"team": "a"}}]
    assert reply.stated == "You said héllo"
    assert reply.latency_ms > 0


@pytest.mark.parametrize("stated", [{"output": "x", "tools_used": ["a"]}, "plain", [1], None, 3, {"no": "output"}])
async def test_what_calls_itself_json_is_read_as_json(fake, stated) -> None:
    assert (await ask(fake.url + "/reported", stated)).stated == stated


async def test_without_a_content_type_only_an_object_with_output_is_taken_for_json(fake) -> None:
    assert (await ask(fake.url + "/untyped", {"output": 1})).stated == {"output": 1}
    assert (await ask(fake.url + "/untyped", {"answer": 1})).stated == '{"answer": 1}'
    assert (await ask(fake.url + "/untyped", 7)).stated == "7"


@pytest.mark.parametrize(("text", "stated"), [("yes", "yes"), ('{"output": "x"}', {"output": "x"})])
async def test_a_byte_order_mark_is_no_part_of_an_answer(fake, text, stated) -> None:
    assert (await ask(fake.url + "/marked", text)).stated == stated


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("broken", "it answered 500 Internal Server Error: Traceback \x1b[31m boom"),
        ("closed", "it answered 503 Service Unavailable"),
        ("much_later", "it answered 503 Service Unavailable"),
        ("moved", "it answered 307 Temporary Redirect to /text"),
        ("garbage", "its answer is not JSON, though its content type is"),
        ("bytes", "its answer is not text in the encoding it names"),
        ("squeezed", "its answer is compressed"),
        ("endless", f"its answer is longer than {MAX_ANSWER} bytes"),
        ("cut", "the connection broke"),
        ("reset", "the connection broke"),
    ],
)
async def test_what_is_no_answer_is_told_and_not_asked_again(fake, path, reason) -> None:
    reported = await refusal(f"{fake.url}/{path}")
    assert reported.reason.startswith(reason)
    assert (len(fake.requested), reported.unreachable) == (1, False)


async def test_a_503_that_names_a_wait_is_tried_twice_more(fake) -> None:
    fake.refusals = 2
    reply = await ask(fake.url + "/overloaded")
    assert (reply.stated, len(fake.requested)) == ("at last", 3)
    fake.refusals = 3
    reported = await refusal(fake.url + "/overloaded")
    assert (reported.unreachable, reported.reason) == (False, "it answered 503 Service Unavailable: busy")
    assert len(fake.requested) == 6


async def test_a_refused_connection_is_tried_three_times_and_is_unreachable() -> None:
    request = Request(input="hi", test_id="t-1", metadata={})
    async with HttpAgent(f"http://127.0.0.1:{free_port()}/", 2) as agent:
        with pytest.raises(AgentError) as reported:
            await agent.ask(request)
    assert (request.attempts, reported.value.unreachable) == (3, True)
    assert reported.value.reason == "cannot connect: Connection refused"


@pytest.mark.parametrize("path", ["slow", "drip"])
async def test_the_callers_time_limit_ends_a_call_however_slowly_it_drips(fake, path) -> None:
    with pytest.raises(TimeoutError):
        await ask(f"{fake.url}/{path}", limit_s=0.3)


async def test_a_proxy_of_the_environment_is_not_between_us_and_this_machine(fake, monkeypatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert (await ask(fake.url + "/text")).stated == "You said hi"


@pytest.mark.parametrize("url", ["http://", "http:///path", "http://[::1", "http://a:b:c/", "http://host:99999999/"])
def test_an_address_that_is_none_is_refused_before_anything_is_asked(url) -> None:
    with pytest.raises(NoSuchAgentError):
        HttpAgent(url, 1)


def test_a_password_in_the_address_is_not_in_the_name() -> None:
    assert HttpAgent("http://me:secret@host:1/ask?x=1", 1).name == "http://host:1/ask?x=1"
