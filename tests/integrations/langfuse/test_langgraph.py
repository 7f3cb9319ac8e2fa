"""Agents within agents, of which Langfuse 4 keeps the outermost name alone, have their own again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sidejudge.integrations.langfuse.normalise import with_agents
from sidejudge.integrations.raw import RawSpan

PREFIX = "langfuse.observation.metadata."
TREE = (
    ("1", None, "run", ""),
    ("2", "1", "tools", "tools:a"),
    ("3", "2", "ask", "tools:a"),
    ("4", "3", "research", "tools:a"),
    ("5", "4", "model", "tools:a|model:b"),
    ("6", "5", "ChatOpenAI", "tools:a|model:b"),
    ("7", "4", "tools", "tools:a|tools:c"),
    ("8", "7", "reader", "tools:a|tools:c"),
    ("9", "8", "model", "tools:a|tools:c|model:d"),
)


def spans(quote: str = "") -> list[RawSpan]:
    return [
        RawSpan(
            trace_id="1" * 32, span_id=number, parent_id=parent, name=name, start_ns=0, end_ns=0,
            attributes={f"{PREFIX}lc_agent_name": f"{quote}boss{quote}",
                        f"{PREFIX}langgraph_checkpoint_ns": f"{quote}{namespace}{quote}"},
        )
        for number, parent, name, namespace in TREE
    ]  # fmt: skip


def agents(reported: list[RawSpan]) -> dict[str, object]:
    return {span.span_id: span.attributes.get(f"{PREFIX}lc_agent_name") for span in reported}


@pytest.mark.parametrize("quote", ["", '"'], ids=["texts", "texts as JSON"])
def test_a_step_belongs_to_the_graph_that_its_namespace_names(quote):
    names = dict.fromkeys("123", "boss") | dict.fromkeys("4567", "research") | dict.fromkeys("89", "reader")
    assert agents(with_agents(spans(quote))) == {number: f"{quote}{name}{quote}" for number, name in names.items()}


def test_names_that_differ_were_not_covered_and_stay():
    reported = spans()
    reported[3] = replace(reported[3], attributes={**reported[3].attributes, f"{PREFIX}lc_agent_name": "other"})
    assert with_agents(reported) == reported


def test_a_graph_without_a_name_is_nobody():
    reported = [replace(span, name="LangGraph") if span.name in ("research", "reader") else span for span in spans()]
    assert with_agents(reported) == reported


def test_spans_without_agents_and_parents_in_a_circle_are_left_alone():
    bare = [replace(span, attributes={}) for span in spans()]
    assert with_agents(bare) == bare
    circle = [replace(span, parent_id="9" if span.span_id == "4" else span.parent_id) for span in spans()]
    assert len(with_agents(circle)) == len(circle)
