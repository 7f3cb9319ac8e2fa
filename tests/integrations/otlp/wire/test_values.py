"""Attributes read from their bytes: the same as protobuf reads, whatever is remembered and whatever is odd."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from sidejudge.integrations.otlp.wire.decode import UndecodableError, decode
from sidejudge.integrations.otlp.wire.schema import classes
from sidejudge.integrations.otlp.wire.values import attributes, decode_attributes

values = st.one_of(
    st.builds(AnyValue),
    st.builds(AnyValue, string_value=st.text(max_size=80)),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, double_value=st.floats()),
    st.builds(AnyValue, bytes_value=st.binary(max_size=40)),
    st.builds(
        AnyValue,
        array_value=st.builds(
            ArrayValue, values=st.lists(st.builds(AnyValue, string_value=st.text(max_size=5)), max_size=3)
        ),
    ),
)


def written(key: str, value: AnyValue) -> bytes:
    return KeyValue(key=key, value=value).SerializeToString()


def parsed(raws: list[bytes]) -> dict[str, object]:
    """What the messages of the schema say."""
    return attributes([classes("whole")["KeyValue"].FromString(raw) for raw in raws])


@given(st.lists(st.builds(written, st.text(max_size=130), values), max_size=8))
def test_they_are_what_protobuf_reads_again_and_again(raws):
    try:
        found = [decode_attributes(raws) for _ in range(2)]
    except IndexError:
        assert any(len(KeyValue.FromString(raw).key.encode()) > 127 or raw[:1] != b"\n" for raw in raws)
    else:
        assert found == [parsed(raws)] * 2
        assert [list(each) for each in found] == [list(parsed(raws))] * 2


@pytest.mark.parametrize("length", [*range(20), *range(110, 140), *range(1000, 1040), 5000, 16_383, 16_384, 70_000])
def test_texts_of_any_length_are_read(length):
    raws = [written("key", AnyValue(string_value="x" * length))]
    assert decode_attributes(raws) == decode_attributes(raws) == {"key": "x" * length}


def listed(*texts: str) -> AnyValue:
    return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=text) for text in texts]))


@pytest.mark.parametrize("value", [listed("one"), AnyValue(array_value=ArrayValue(values=[listed("one")]))])
def test_a_list_belongs_to_whoever_was_given_it(value):
    raws = [written("key", value)]
    read = decode_attributes(raws)
    for _ in range(3):
        changed = decode_attributes(raws)["key"]
        (changed if changed == ["one"] else changed[0]).append("two")
        assert decode_attributes(raws) == read
        assert read["key"] in (["one"], [["one"]])


@pytest.mark.parametrize("value", [AnyValue(string_value="short"), AnyValue(string_value="x" * 200), listed("a", "b")])
def test_more_than_is_remembered_is_read_as_well(value):
    for n in range(10_000):
        assert decode_attributes([written(f"key.{n}", value)]) == parsed([written(f"key.{n}", value)])
        assert decode_attributes([written("key", AnyValue(int_value=n))]) == {"key": n}


@pytest.mark.parametrize("raw", [b"\n\x01k\0", b"\n\x01k\0\0\0", b"\n\x01k\x12\x05\n\x01x", b"\n\x01k\x07"])
def test_damage_is_no_value(raw):
    with pytest.raises(DecodeError):
        decode_attributes([raw])


def test_damage_in_a_span_without_ids_is_damage():
    span = b"\x4a\x04\n\x01k\x07"
    scope = b"\x12" + bytes((len(span),)) + span
    resource = b"\x12" + bytes((len(scope),)) + scope
    with pytest.raises(UndecodableError):
        decode(b"\n" + bytes((len(resource),)) + resource)
