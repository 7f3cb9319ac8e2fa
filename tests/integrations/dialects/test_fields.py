"""Fields are asked of a span as far as it has their attributes, which must not change what is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.dialects.fields import Fields, real, text, tokens, value
from sidejudge.integrations.dialects.reading import SpanReading
from sidejudge.integrations.raw import AttributeValue, RawSpan
from sidejudge.scoring.trace.span import Usage

FIELDS = Fields(
    model=text("answering", "asked"),
    usage=tokens(prompt=("in",), completion=("out",), cached=("cached",), reasoning=("reasoned",)),
    cost_usd=real("cost"),
    input=value("input"),
)


def _reading(attributes: dict[str, AttributeValue]) -> SpanReading:
    span = RawSpan(
        trace_id="1" * 32, span_id="a" * 16, parent_id=None, name="n", start_ns=1, end_ns=2, attributes=attributes
    )  # fmt: skip
    return SpanReading(span)


def test_what_no_attribute_tells_is_none_and_notes_nothing() -> None:
    reading = _reading({"other": 1})
    assert FIELDS.read(reading) == {"model": None, "usage": None, "cost_usd": None, "input": None}
    assert reading.provenance == {}


def test_the_most_trusted_attribute_that_holds_something_tells_a_field_whatever_their_order_in_the_span() -> None:
    reading = _reading({"asked": "m-1", "input": [1], "answering": "m-2", "cost": "0.5"})
    assert FIELDS.read(reading) == {"model": "m-2", "usage": None, "cost_usd": 0.5, "input": [1]}
    assert list(reading.provenance.items()) == [("model", "answering"), ("cost_usd", "cost"), ("input", "input")]
    assert FIELDS.read(_reading({"asked": "m-1", "answering": " "}))["model"] == "m-1"


def test_tokens_are_counted_together_and_each_count_names_its_attribute() -> None:
    reading = _reading({"in": 7, "cached": 3, "reasoned": "x"})
    assert FIELDS.read(reading)["usage"] == Usage(input=7, output=None, cached_input=3)
    assert reading.provenance == {"usage": "in", "usage.cached_input": "cached"}
    assert FIELDS.read(_reading({"cached": 3}))["usage"] is None


@given(
    st.dictionaries(
        st.sampled_from(["answering", "asked", "in", "out", "cost", "input", "x"]), st.integers() | st.text()
    )
)
def test_asking_for_what_is_there_tells_what_asking_for_everything_does(attributes: dict[str, AttributeValue]) -> None:
    reported, requested = _reading(attributes), _reading(attributes)
    everything = {
        "model": requested.text("model", "answering", "asked"),
        "usage": requested.tokens("usage", ("in",), ("out",), ("cached",), ("reasoned",)),
        "cost_usd": requested.real("cost_usd", "cost"),
        "input": requested.value("input", "input"),
    }
    assert (FIELDS.read(reported), reported.provenance) == (everything, requested.provenance)
