"""A body of OpenAI's protocol that litellm does not read: as a stream, with its message in parts."""

from __future__ import annotations

import json

import pytest

from sidejudge.integrations.judge.client import JudgeModel, completion_of
from sidejudge.integrations.judge.raw_body import MAX_BODY, error_in, read_body
from sidejudge.integrations.provider.errors import ProviderError

MODEL = JudgeModel(name="openai/m", api_base="http://localhost")


def event(delta, finish=None, **more):
    chunk = {"id": "x", "model": "m", "choices": [{"delta": delta, "finish_reason": finish}], **more}
    return f"data: {json.dumps(chunk)}\n\n"


def text_of(body):
    return completion_of(read_body(body)[0], MODEL, 0.1).text


def message(content, **more):
    return json.dumps({"model": "m", "choices": [{"message": {"content": content}, "finish_reason": "stop"}], **more})


def test_a_stream_is_its_pieces_together_with_the_account_at_its_end():
    stream = ": ping\n\n" + event({"role": "assistant"}) + event({"content": '{"a"'}) + event({"content": ": 1}"})
    stream += event({}, "length", usage={"prompt_tokens": 7, "completion_tokens": 3}) + "data: [DONE]\n"
    body, shapes = read_body(stream)
    found = completion_of(body, MODEL, 0.1)
    assert (found.text, shapes, found.cut_off) == ('{"a": 1}', ("stream",), True)
    assert (found.usage.input_tokens, found.usage.output_tokens) == (7, 3)


def test_a_line_separator_within_a_piece_ends_no_line():
    chunk = {"choices": [{"delta": {"content": "a\u2028b\u0085c"}, "finish_reason": "stop"}]}
    for end in ("\n\n", "\r\n\r\n", "\r\r"):
        assert text_of(f"data: {json.dumps(chunk, ensure_ascii=False)}{end}data: [DONE]{end}") == "a\u2028b\u0085c"


def test_an_error_within_a_stream_is_named_and_no_answer():
    stream = event({"content": '{"a": 1}'}) + 'data: {"error": {"message": "busy"}}\n\ndata: [DONE]\n'
    assert error_in(read_body(stream)[0]) == "busy"


def test_a_message_in_parts_is_their_text_without_thoughts():
    parts = [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body, shapes = read_body(message(parts))
    assert (completion_of(body, MODEL, 0.1).text, shapes) == ("ab", ("parts",))
    assert read_body(message("ab"))[1] == ()
    for kind in ("thinking", "reasoning", "reasoning_text", "thought"):
        parts = [{"type": kind, "text": "so"}, {"type": "output_text", "text": "a"}, {"text": "b"}]
        body, _ = read_body(message(parts))
        assert completion_of(body, MODEL, 0.1).text == "ab"


@pytest.mark.parametrize(
    "body",
    [
        "", "<html><body>502</body></html>", '{"choices": [', "[1]", event({"content": "half"}),
        "data: {\n\n", event({"content": "x"}) + "oops\n", "x" * (MAX_BODY + 1),
    ],
    ids=["nothing", "a page", "cut off", "a list", "a stream that broke off", "a bad event", "a line between", "huge"],
)  # fmt: skip
def test_what_is_no_response_is_refused(body):
    with pytest.raises(ValueError, match=r"."):
        read_body(body)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3}, (7, 3)),
        ({"prompt_tokens": "7", "completion_tokens": "x"}, (7, 0)),
        ({"prompt_tokens": -7, "completion_tokens": True}, (0, 0)), (None, (0, 0)), ("much", (0, 0)), ([], (0, 0)),
        ({"prompt_tokens": 7.0, "completion_tokens": None}, (7, 0)),
    ],
)  # fmt: skip
def test_an_account_that_is_none_costs_no_answer(usage, tokens):
    found = completion_of(read_body(message("a", usage=usage))[0], MODEL, 0.1)
    assert (found.text, found.usage.input_tokens, found.usage.output_tokens) == ("a", *tokens)


def test_no_choices_are_no_response_and_an_error_within_is_named():
    for nothing in ([], None):
        body = {"choices": nothing, "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
        with pytest.raises(ProviderError, match="choices hold no answer") as refused:
            text_of(json.dumps(body))
        assert (refused.value.usage.input_tokens, refused.value.usage.output_tokens) == (7, 3)
    assert error_in({"error": {"message": "busy"}}) == "busy"
    assert error_in({"choices": []}) is None


ANSWER = {"answers": []}


@pytest.mark.parametrize(
    "said",
    [
        {"tool_calls": [{"function": {"name": "f", "arguments": json.dumps(ANSWER)}}]},
        {"tool_calls": [{"function": {"name": "f", "arguments": ANSWER}}]},
        {"function_call": {"name": "f", "arguments": json.dumps(ANSWER)}},
    ],
)
def test_arguments_are_read_as_litellm_reads_them(said):
    body = {"choices": [{"message": {"content": None, **said}, "finish_reason": "stop"}]}
    found = completion_of(body, MODEL, 0.1)
    assert (json.loads(found.text), found.tool_call) == (ANSWER, True)
