"""One unwrap for all shapes, and the reader of printed Python values below it."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.dialects import jsontext, pyrepr, unwrap

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(plain, max_size=4) | st.dictionaries(st.text(), plain, max_size=4))
def test_what_python_prints_is_read_back(value: object) -> None:
    assert pyrepr.read(repr(value)) == value


@given(st.lists(plain, max_size=4) | st.dictionaries(st.text(), plain, max_size=4))
def test_json_text_is_decoded_once_or_twice(value: object) -> None:
    once = orjson.dumps(value).decode()
    assert unwrap.decoded(once) == value
    assert unwrap.decoded(orjson.dumps(once).decode()) == value


@given(st.text())
def test_no_text_stops_the_reader_of_printed_values(text: str) -> None:
    for candidate in (text, "{" + text, f"Message(text={text}", f"['{text}"):
        try:
            pyrepr.read(candidate)
        except pyrepr.UnreadableError:
            continue


def test_printed_objects_become_maps_and_enums_their_values() -> None:
    text = "ChatMessage(_role=<ChatRole.USER: 'user'>, n=1.5, _content=[T(text='it\\'s\\n')], o=<X at 0x7f>, t=(1, 2))"
    assert pyrepr.read(text) == {
        "__class__": "ChatMessage", "_role": "user", "n": 1.5,
        "_content": [{"__class__": "T", "text": "it's\n"}], "o": None, "t": [1, 2],
    }  # fmt: skip


def test_plain_values_are_read_alike_beside_their_names_and_alone() -> None:
    values = ("'x'", "None", "True", "-0", "007", "1_0", "+1", "1.5", "9" * 18, "9" * 19, "'it\\'s'", "b'x'", "null")
    for value in values:
        alone = pyrepr.read(f"[{value}]")
        assert isinstance(alone, list)
        for text in (f"{{'k': {value}}}", f"{{'k':{value} }}", f"{{'k': {value},}}", f"{{'k': {value}, }}"):
            assert pyrepr.read(text) == {"k": alone[0]}, text
        for text in (f"C(k={value})", f"C(k={value} )", f"C(k={value}, )"):
            assert pyrepr.read(text) == {"__class__": "C", "k": alone[0]}, text


@pytest.mark.parametrize(
    "text",
    [
        "", "word", "f(", "{'a': }", "['a' 'b']", "[...]", "[" * 200, "{'a': 1", "StopEvent(x='cut...", "{'a': 1]",
        "{'a': None)", "C(a=1}", "C(a='x']", "{'a': None 'b': 1}",
    ],
)  # fmt: skip
def test_what_was_cut_or_never_was_a_value_is_refused(text: str) -> None:
    with pytest.raises(pyrepr.UnreadableError):
        pyrepr.read(text)


def test_a_long_unfinished_string_is_refused_in_linear_time() -> None:
    with pytest.raises(pyrepr.UnreadableError):
        pyrepr.read("['" + "a\\\\" * 500_000)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("30", "30"), ("true", "true"), ("[policy.pdf p.4] So", "[policy.pdf p.4] So"), ('"quoted"', "quoted"),
        ("{'query': 'x', 'n': None}", {"query": "x", "n": None}), ('{"a": NaN}', {"a": "NaN"}),
        ('["\\ud83d"]', ["\ufffd"]), ('["\\ud83d\\ude00"]', ["\U0001f600"]), ("[1e999]", ["1e999"]),
        ("[123456789012345678901234]", ["123456789012345678901234"]), ("__REDACTED__", None),
        ('["4e1867d4-1", 1e1867]', ["4e1867d4-1", "1e1867"]), ("[1e300]", [1e300]),
        ('["id-%s"]' % ("1" * 30), ["id-" + "1" * 30]), ("{'a': 1, 'b': [None]", "{'a': 1, 'b': [None]"),
        ('{"a": 9223372036854775807, "b" : -9223372036854775809 }',
         {"a": 9223372036854775807, "b": "-9223372036854775809"}),
        ("[Scrubbed due to 'session']", None), (b"\xffab", "\ufffdab"), (None, None), (4, 4),
    ],
)  # fmt: skip
def test_a_value_is_decoded_only_where_it_is_a_container_or_quoted(text: object, wanted: object) -> None:
    assert unwrap.decoded(text) == wanted


def test_scalars_are_decoded_where_the_client_writes_everything_as_json() -> None:
    assert [unwrap.decoded(text, scalars=True) for text in ("4711", "true", '"a"', "plain")] == [
        4711,
        True,
        "a",
        "plain",
    ]


def test_a_whole_number_that_not_all_readers_can_hold_stays_its_digits() -> None:
    assert [unwrap.decoded("9" * digits, scalars=True) for digits in (18, 19, 400)] == [10**18 - 1, "9" * 19, "9" * 400]


def test_json_nested_beyond_what_can_be_written_again_is_cut() -> None:
    found = unwrap.decoded("[" * 900 + "]" * 900)
    levels = 0
    while isinstance(found, list) and found:
        found, levels = found[0], levels + 1
    assert (found, levels) == (None, jsontext.MAX_DEPTH)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ('{"task": "Q"}', "Q"), ('{"input": "Q"}', "Q"), ('{"args": ["Q"], "kwargs": {"stream": false}}', "Q"),
        ('{"args": [], "kwargs": {"question": "Q"}}', "Q"), ('{"args": [{"task": "Q"}], "kwargs": {}}', "Q"),
        ("Q", "Q"), ('{"a": 1, "b": 2}', '{"a": 1, "b": 2}'), ({"a": 1}, {"a": 1}), ('"Q"', "Q"), (None, None),
        ('{"graph": null, "update": null, "resume": {"decisions": []}}', None),
        ('{"input": {"graph": null, "update": null, "resume": "yes", "goto": []}}', None),
        ('{"resume": "me", "update": "it"}', '{"resume": "me", "update": "it"}'),
        ('{"lg_name":"Command","resume":{"decisions":[]},"goto":[]}', None),
    ],
)  # fmt: skip
def test_a_task_loses_its_wrappers_and_nothing_else(value: object, wanted: object) -> None:
    assert unwrap.task(value) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ('{"questions": []}', '{"questions": []}'), ('{"output": "A"}', "A"), ('{"raw": "A", "tasks_output": []}', "A"),
        ('{"answer": "A"}', '{"answer": "A"}'), ('{"output": {"content": "A"}}', "A"), ("A\n", "A\n"),
        ('{"status": "suspended", "toolName": "pay", "toolCallId": "c"}', None),
        ('{"status": "suspended", "order": "A-1"}', '{"status": "suspended", "order": "A-1"}'),
        ('{"status":"aborted","reason":"abort"}', None), ('{"status": "aborted"}', '{"status": "aborted"}'),
        ('{"tripwire":{"reason":"no","processorId":"guard"}}', None), ('{"tripwire": "A"}', '{"tripwire": "A"}'),
        ('{"text":"{\\"n\\":1}","object":{"n":1},"files":[]}', '{"n":1}'),
        ('{"text":"One.","object":{"n":1},"files":[]}', {"n": 1}),
        ('{"text":"A","object":1}', '{"text":"A","object":1}'),
        ('{"text":"","toolCalls":[{"toolCallId":"c","toolName":"f"}],"files":[]}', ""),
    ],
)  # fmt: skip
def test_an_answer_loses_its_wrappers_and_nothing_else(value: object, wanted: object) -> None:
    assert unwrap.answer(value) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ('{"args": [], "kwargs": {"q": 1}}', {"q": 1}), ('{"kwargs": {"q": 1}}', {"q": 1}), ("bare", "bare"),
        ('{"args": ["x"], "kwargs": {}}', "x"), ('{"args": [1, 2], "kwargs": {}}', {"args": [1, 2], "kwargs": {}}),
        ('{"input": "{\\"q\\": 1}"}', {"q": 1}), ('{"q": 1, "ctx": "<workflows.Context object at 0x7f68>"}', {"q": 1}),
        ("{'q': 'x'}", {"q": "x"}), ("{}", {}), (None, None),
        ("None", None), ("null", None), ("", None), ('[{"role": "tool", "content": "{\\"q\\": 1}"}]', {"q": 1}),
    ],
)  # fmt: skip
def test_arguments_are_a_map_where_they_can_be(value: object, wanted: object) -> None:
    assert unwrap.arguments(value) == wanted


def test_results_lose_the_wrappers_of_frameworks_and_keep_their_errors() -> None:
    message = {"content": "text", "tool_call_id": "c1", "status": "success", "type": "tool"}
    serialised = {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": message}
    dumped = {"type": "tool", "data": message}
    for value in (message, serialised, dumped, {"output": message}, orjson.dumps({"output": serialised}).decode()):
        assert unwrap.result(value) == unwrap.ToolResult(result="text", call_id="c1")
    assert unwrap.result('[{"json":{"n":1}}]') == unwrap.ToolResult(result={"n": 1})
    assert unwrap.result(message | {"status": "error"}) == unwrap.ToolResult(error="text", call_id="c1")
    output = {"blocks": [], "tool_name": "t", "raw_output": "text", "is_error": False}
    assert unwrap.result(output) == unwrap.ToolResult(result="text")
    assert unwrap.result(output | {"is_error": True}) == unwrap.ToolResult(error="text")
    assert unwrap.result('{"result": {"rows": 3}}') == unwrap.ToolResult(result={"rows": 3})
    assert unwrap.result('{"data": {"output": 1}}') == unwrap.ToolResult(result={"data": {"output": 1}})
    assert unwrap.result("30") == unwrap.ToolResult(result="30")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"type": "text", "text": '{"rows": 3}'}, {"rows": 3}), ([{"type": "text", "text": "x", "id": "lc_1"}], "x"),
        ({"type": "text", "text": "x", "annotations": None, "meta": None}, "x"), ([{"text": "x"}], "x"),
        ({"content": [{"type": "text", "text": "x"}], "isError": False}, "x"),
        ({"text": "x"}, {"text": "x"}), ({"type": "text", "text": "x", "n": 4}, {"type": "text", "text": "x", "n": 4}),
        ([{"text": "x", "page": 4}], [{"text": "x", "page": 4}]), ({"content": ["x"]}, {"content": ["x"]}),
        ({"content": [{"type": "text", "text": "x"}]}, "x"),
        ({"content": [{"type": "heading", "text": "x"}]}, {"content": [{"type": "heading", "text": "x"}]}),
        ([{"type": "text", "text": "x"}] * 2, [{"type": "text", "text": "x"}] * 2),
    ],
)  # fmt: skip
def test_a_lone_text_loses_the_wrapper_of_a_part_and_a_map_that_is_none_keeps_all(
    value: object, wanted: object
) -> None:
    assert unwrap.result(value) == unwrap.ToolResult(result=wanted)


def test_a_message_of_langchain_s_is_read_as_it_is_printed() -> None:
    printed = """content='{"rows": "it\\'s 3"}' name='sql' id='m1' tool_call_id='c1'"""
    assert unwrap.result(printed) == unwrap.ToolResult(result={"rows": "it's 3"}, call_id="c1")
    failed = """content="no such table" name='sql' tool_call_id='c1' status='error'"""
    assert unwrap.result(failed) == unwrap.ToolResult(error="no such table", call_id="c1")
    for other in ("content='x'", "content='x' of a book", "content=3 tool_call_id='c1'", "content='x tool_call_id='c'"):
        assert unwrap.result(other) == unwrap.ToolResult(result=other)


def test_a_failed_result_of_mcp_is_an_error() -> None:
    failed = {"content": [{"type": "text", "text": "no such row"}], "isError": True, "structuredContent": None}
    assert unwrap.result(failed) == unwrap.ToolResult(error="no such row")


@pytest.mark.parametrize(
    ("state", "wanted"),
    [
        ("success", unwrap.ToolResult(result="no such row")), ("error", unwrap.ToolResult(error="no such row")),
        ("denied", unwrap.ToolResult(error="no such row")),
    ],
)  # fmt: skip
def test_a_result_of_agentscope_has_its_state_beside_its_parts(state: str, wanted: unwrap.ToolResult) -> None:
    part = {"type": "text", "text": "no such row", "id": "p1", "created_at": "2026-11-28", "finished_at": None}
    assert unwrap.result({"content": [part], "state": state, "metadata": {}, "id": "c1"}) == wanted


def test_a_state_that_a_tool_returns_among_other_things_is_its_own() -> None:
    order = {"content": ["a book"], "state": "error", "order": "A-17"}
    assert unwrap.result(order) == unwrap.ToolResult(result=order)


@pytest.mark.parametrize(
    "value",
    [
        '["one", "two"]', [{"page_content": "one"}, {"content": "two"}], {"documents": [{"text": "one"}, "two"]},
        [{"document": {"content": "one"}}, {"node": {"text": "two"}}],
        '[{"content": "one"}, {"score": 1}, {"text": "two"}]',
    ],
)  # fmt: skip
def test_documents_are_texts_whatever_holds_them(value: object) -> None:
    assert unwrap.documents(value) == ("one", "two")
