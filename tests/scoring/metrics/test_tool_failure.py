"""Which results of tools are failures: error messages and declared errors, and nothing that only speaks of errors."""

from __future__ import annotations

import pytest

from sidejudge.scoring.metrics.tool_failure import failure_of, text_failure
from sidejudge.scoring.trace.span import ToolCall

FAILURES = [
    ("Error: no such page", "error text"),
    ("ERROR - could not parse", "error text"),
    ("[Error] quota used up", "error text"),
    ("Tool error: timeout", "error text"),
    ("Error executing tool search: bad query", "error text"),
    ("Error when calling tool 'visit_page'", "error text"),
    ("An error occurred while reading the file", "error text"),
    ("An unexpected error has occurred.", "error text"),
    ("ValueError: not a number", "ValueError"),
    ("requests.exceptions.ReadTimeout: HTTPSConnectionPool", "ReadTimeout"),
    ("smolagents.InterpreterError(code)", "InterpreterError"),
    ("Traceback (most recent call last):\n  File \"x\"\nKeyError: 'a'", "KeyError"),
    ("HTTP 404", "HTTP 404"),
    ("HTTP error 503: unavailable", "HTTP 503"),
    ("Status code: 429", "HTTP 429"),
    ("404 Client Error: Not Found for url", "HTTP 404"),
    ("403 Forbidden", "HTTP 403"),
    ("Failed to connect to host", "error text"),
    ("Code execution failed at line 3", "error text"),
    ("Request timed out after 30 s", "error text"),
    ("Permission denied", "error text"),
    ("Rate limit exceeded, retry later", "error text"),
    ("Invalid arguments: query is required", "error text"),
    ("Unknown tool: serch", "error text"),
    ("Tool get_wether does not exist", "error text"),
    ("The tool call with name 'get_wether' is not part of the provided tools, please try again.", "error text"),
    ("The tool call arguments are malformed. Arguments must be in JSON format.", "error text"),
    ("get_weather() got an unexpected keyword argument 'town'", "error text"),
    ("Shop.find() missing 1 required positional argument: 'order_id'", "error text"),
    ("Expecting value: line 1 column 10 (char 9)", "error text"),
    ("Missing required argument(s): ['city']. Please provide the required arguments.", "error text"),
    ("Fehler: keine Verbindung", "error text"),
    ("  \n❌ Error: nope", "error text"),
]
RESULTS = [
    "", "   ", "ok", "No results found for 'errors in accounting'.",
    "Error-correcting codes are used in memory chips.",
    "Errors in variables is a model in statistics.",
    "The error rate fell to 2 %.", "404 Main Street, Springfield", "500 items in stock", "4040",
    "Exceptional service, five stars", "Exceptions to the rule are listed below", "Time out is a magazine of London.",
    "terror: a history", "Mirrors: three", "Timeouts per game: 3", "Requests for proposals",
    "Invalid carriages of 1880",
    "Failures of bridges, a list", "Denied boarding is paid with 250 euros", "Access roads are closed",
    "Unknown Pleasures is an album.", "Status codes of HTTP: 404 means not found",
    "Command economy", "Failed states index 2024", "He said: Error: is human",
    "Python has ValueError and TypeError.",
    '{"error": null, "items": []}',
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), FAILURES)
def test_an_error_message_is_a_failure(text, kind):
    assert text_failure(text) == kind


@pytest.mark.parametrize("text", RESULTS)
def test_a_text_about_errors_is_a_result(text):
    assert failure_of(ToolCall(name="t", result=text)) is None


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({"error": "no such order"}, "error in the result"),
        ({"error": "KeyError: 'x'"}, "KeyError"),
        ({"errors": [{"message": "m"}]}, "error in the result"),
        ({"error": {"code": 5}}, "error in the result"),
        ({"isError": True, "content": []}, "error in the result"),
        ({"status": "error", "message": "m"}, "error in the result"),
        ({"status": "failed"}, "error in the result"),
        ({"status": "failed", "request_id": "r1"}, "error in the result"),
        ({"status": "error", "toolCallId": "c1", "message": "m"}, "error in the result"),
        ({"status": "failed", "valid": 1}, "error in the result"),
        ({"success": False}, "error in the result"),
        ({"status_code": 502, "body": ""}, "HTTP 502"),
        ({"code": 404, "message": "not found"}, "HTTP 404"),
        ('{"error": "as JSON text"}', "error in the result"),
        ([{"type": "text", "text": "Error: m"}], "error text"),
    ],
)
def test_a_declared_error_is_a_failure(result, kind):
    assert failure_of(ToolCall(name="t", result=result)) == kind


@pytest.mark.parametrize(
    "result",
    [
        None, 0, False, [], {}, {"error": None}, {"error": ""}, {"error": 0}, {"errors": []}, {"success": True},
        {"status": "ok"}, {"status": 200}, {"code": 404, "product": "wrench"}, {"status_code": 200},
        {"order": 7, "customer": 4, "amount": 3, "status": "failed"}, {"error_rate": 0.2},
        {"data": {"error": "nested"}}, [{"error": "one row"}, {"error": "of several"}], {"status": "error_free"},
        {"state": "denied", "a": 1, "b": 2, "c": 3},
        # What a job came to that was looked up: the call brought it.
        {"id": 7, "status": "failed"}, {"job_id": "j1", "state": "failed", "reason": "out of memory"},
        {"orderId": 7, "status": "error"}, [{"uuid": "u", "status": "timeout"}],
        {"result": {"_id": 1, "state": "failed"}},
    ],
)  # fmt: skip
def test_data_that_holds_such_words_is_a_result(result):
    assert failure_of(ToolCall(name="t", result=result)) is None


def test_an_error_status_is_a_failure_whatever_was_returned():
    assert failure_of(ToolCall(name="t", result="fine", error="boom")) == "error status"
    assert failure_of(ToolCall(name="t", error="TimeoutError: 30 s")) == "TimeoutError"


def test_no_contents_are_in_the_kind():
    assert "4711" not in str(failure_of(ToolCall(name="t", error="ValueError: card 4711")))
