"""Whether a span failed: by its status, ``error.type`` as the conventions have it, or exception."""

from __future__ import annotations

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.dialects.reading import failure
from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.trace import Trace

ROOT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
CALL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup_order"}


def raw(span_id="2" * 16, parent_id=None, status=0, message="", events=(), **attributes):
    return RawSpan(
        trace_id="1" * 32, span_id=span_id, parent_id=parent_id, name=f"step {span_id[:1]}", start_ns=int(span_id[0]),
        end_ns=int(span_id[0]) + 1, scope_name="app", status_code=status, status_message=message, events=tuple(events),
        attributes={key.replace("__", "."): value for key, value in attributes.items()},
    )  # fmt: skip


def exception(**attributes):
    return RawEvent(
        name="exception", time_ns=1, attributes={f"exception.{key}": value for key, value in attributes.items()}
    )


PAUSE = '[\n  {"value": "%s"}\n]' % ("Pay? " * 400)
"""What a person is to decide, as LangGraph JS raises it."""


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (raw(), None),
        (raw(status=1), None),
        (raw(status=2), "error"),
        (raw(status=2, message="no such order"), "no such order"),
        (raw(error__type="ConnectionError"), "ConnectionError"),
        (raw(status=2, message="ConnectionError: down", error__type="tool_error"), "ConnectionError: down"),
        (
            raw(status=2, message="ConnectionError('down')", events=[exception(type="Exception")]),
            "ConnectionError: down",
        ),
        (raw(status=2, message="no such order", error__type="tool_error"), "tool_error: no such order"),
        (raw(status=2, message="down\n\nTypeError: down\n    at f (x.mjs:1:2)"), "TypeError: down"),
        (raw(error__type="tool_error"), "tool_error"),
        (raw(status=1, error__type="tool_error"), None),
        (raw(error__type="_OTHER"), "error"),
        (raw(error__type=500), "500"),
        (raw(error__type="ValueError", events=[exception(type="ValueError", message="bad id")]), "ValueError: bad id"),
        *((raw(error__type=nothing), None) for nothing in ("", " ", "none", "None", "null", "OK", None)),
        (raw(events=[exception(type="ValueError", message="caught")]), None),
        (raw(events=[exception(type="ValueError", message="raised", escaped=True)]), "ValueError: raised"),
        (raw(events=[exception(type="ValueError", message="raised", escaped="True")]), "ValueError: raised"),
        (raw(events=[exception(type="ValueError", message="caught", escaped="False")]), None),
        (raw(error__type="langgraph.errors.ParentCommand"), None),
        (raw(status=2, message="GraphInterrupt((Interrupt(value='ok?'),))Traceback (most recent call last):\n"), None),
        (raw(status=2, message="ParentCommand(Command(goto='bob'))", error__type="tool_error"), None),
        (raw(status=2, message="ParentCommander: down"), "ParentCommander: down"),
        (raw(status=2, message=f"{PAUSE}\n\nGraphInterrupt: {PAUSE}\n    at interrupt (x.mjs:1:2)"), None),
        (raw(status=2, message="\n\nParentCommand\n    at f (x.mjs:1:2)\n    at g (y.mjs:3:4)"), None),
        (raw(status=2, events=[exception(type="pydantic_ai.exceptions.ApprovalRequired")]), None),
        (raw(status=2, events=[exception(type="ToolInterruptError")]), None),
        (raw(status=2, message="CallDeferred", events=[exception(type="pydantic_ai.exceptions.CallDeferred")]), None),
        (
            raw(status=2, message="not done", events=[exception(type="shop.ApprovalRequired")]),
            "shop.ApprovalRequired: not done",
        ),
        (raw(status=2, events=[exception(type="GeneratorExit")]), None),
        (raw(status=2, message="abandoned stream", error__type="_OTHER"), None),
        (raw(status=2, message="abandoned stream", error__type="ShopError"), "ShopError: abandoned stream"),
        (
            raw(status=2, events=[exception(type="asyncio.exceptions.CancelledError")]),
            "asyncio.exceptions.CancelledError",
        ),
    ],
)
def test_a_span_failed_by_any_of_three_marks(span, expected):
    assert failure(span) == expected


@pytest.mark.parametrize("mark", [{"error__type": "ConnectionError"}, {"status": 2}])
def test_a_tool_that_has_an_error_type_alone_has_failed_as_one_with_the_status_has(mark):
    spans = [raw("1" * 16, **ROOT), raw("3" * 16, "1" * 16, **CALL, **mark)]
    case = extract(Trace.of("1" * 32, [normalise(span) for span in spans], "batch"))
    found = score(case, RUBRICS["run_health"], created_at="")
    assert next(each.result.value for each in found.scores if each.metric == "tool_success") == 0.0
