"""The version of a managed prompt is metadata of the trace, whichever client noted it."""

from __future__ import annotations

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.trace import Trace


@pytest.mark.parametrize(
    ("attributes", "name", "version"),
    [
        ({"langfuse.observation.prompt.name": "support", "langfuse.observation.prompt.version": 3}, "support", 3),
        ({"traceloop.prompt.key": "support", "traceloop.prompt.version": 4}, "support", 4),
        ({"llm.prompt_template.version": "v2"}, None, "v2"),
        ({"metadata": '{"prompt_version": "2026-11"}'}, None, "2026-11"),
        ({}, None, None),
    ],
)
def test_the_version_of_a_prompt_is_read_from_the_call_that_used_it(
    attributes: dict[str, object], name: str | None, version: object
) -> None:
    raw = RawSpan(
        trace_id="a" * 32, span_id="1" * 16, parent_id=None, name="call", start_ns=1, end_ns=2,
        attributes={"gen_ai.request.model": "small-1", **attributes},
    )  # fmt: skip
    metadata = extract(Trace.of("a" * 32, [normalise(raw)], "root_ended")).metadata
    assert (metadata.get("prompt_name"), metadata.get("prompt_version")) == (name, version)
