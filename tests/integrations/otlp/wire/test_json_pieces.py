"""A body of many values is parsed piece by piece, with the same outcome, and no piece is large."""

from __future__ import annotations

import json
import threading

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.integrations.otlp.wire import decode_json
from sidejudge.integrations.otlp.wire.decode import UndecodableError
from sidejudge.integrations.otlp.wire.decode_json import load_object, load_pieces
from sidejudge.integrations.otlp.wire.receipt import Undecodable
from sidejudge.integrations.otlp.wire.request_json import load

LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.floats(allow_nan=False)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=40,
)


def deep(value, by: int):
    return deep({"in": [value, '"}]{[\\']}, by - 1) if by else value


def span(**more) -> dict:
    return {
        "resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [{"traceId": "1" * 32, **more}]}]}]
    }


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.integers(0, 8), st.booleans())
def test_whatever_the_shape_the_outcome_is_that_of_one_parser(value, depth, indented):
    body = json.dumps(deep(value, depth), indent=1 if indented else None).encode()
    assert load_pieces(body) == load_object(body)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(span(name='a"}],[{', attributes=[{"key": "\\\\", "value": {"stringValue": "\\u007b\n"}}])).encode(),
        b'\xef\xbb\xbf{"resourceSpans":[{"scopeSpans":[{"spans":[{"x":NaN,"y":"\xff"},{"x":-Infinity}]}]}]}',
        b'{"a":[[[[[[[[[[]]]]],1]]]]]}',
        b"{}",
    ],
)
def test_odd_writing_is_read_as_it_was(body):
    assert load_pieces(body) == load_object(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"',
        b'{"a":[[[[[[[1}]]]]]]}',
        b'{"a":[[[[[[[1]]]]]]',
        b'{"a":"[[[[[[[[',
        b"]]]]]]]]{}",
        b"[[[[[[[1]]]]]]]",
    ],
)
def test_what_is_no_object_is_refused_as_it_was(body):
    with pytest.raises(UndecodableError):
        load_object(body)
    with pytest.raises(UndecodableError):
        load_pieces(body)


def test_nobody_can_write_the_mark_of_a_piece():
    body = orjson.dumps(span(name={f"{0:016x}": 0}))
    assert load_pieces(body) == orjson.loads(body)


@pytest.mark.parametrize(
    "flood",
    [
        lambda n: orjson.dumps(span(**{f"k{i}": 1 for i in range(n)})),
        lambda n: orjson.dumps(span(attributes=[{"key": f"k{i}", "value": {"intValue": 1}} for i in range(n // 3)])),
        lambda n: orjson.dumps({"resourceSpans": [], **{f"k{i}": 1 for i in range(n)}}),
        lambda n: orjson.dumps(
            {"resourceSpans": [{"resource": {"attributes": [{"key": f"k{i}"} for i in range(n // 4)]}}]}
        ),
    ],
    ids=["keys of a span", "attributes of a span", "keys of the request", "attributes of a resource"],
)
def test_keys_without_end_in_one_place_are_refused(flood):
    with pytest.raises(Undecodable, match=r"more (than 1?50000|objects or) values.*; send smaller batches"):
        load(flood(300_000), "resourceSpans")
    assert load(flood(12_000), "resourceSpans")


def test_no_step_of_a_large_body_is_given_to_the_parser_whole(monkeypatch):
    """What one step parses is counted, not timed: no other thread has its turn during a step."""
    spans = [{"traceId": f"{i:032x}", "spanId": f"{i:016x}", "name": "x"} for i in range(25_000)]
    body = orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    steps = []
    parse = decode_json.load_value
    monkeypatch.setattr(
        decode_json, "load_value", lambda piece: steps.append((len(piece), threading.get_ident())) or parse(piece)
    )
    assert len(load(body, "resourceSpans")["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 25_000
    assert len(steps) == 25_001
    assert max(size for size, _ in steps) < len(body) // 2
