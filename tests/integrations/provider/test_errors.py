"""What a provider's failure is called, and how long it asks to be left alone."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime

import httpx
import pytest

from sidejudge.integrations.provider.errors import ProviderErrorKind, read_error

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_error_of_no_known_kind_is_a_bad_answer_and_holds_no_key():
    error = ValueError("sk-very-secret is wrong\nand more")
    error.__cause__ = KeyError("choices")
    read = read_error(error, secret="sk-very-secret", now=NOW)
    assert read.kind is ProviderErrorKind.BAD_ANSWER
    assert read.message == "… is wrong"
    assert read.retry_after_s is None


def test_errors_that_cause_each_other_are_read_once():
    first, second = ValueError("a"), ValueError("b")
    first.__context__, second.__context__ = second, first
    assert read_error(first, secret=None).kind is ProviderErrorKind.BAD_ANSWER


def test_what_a_provider_quotes_far_behind_is_not_its_word():
    error = ValueError("rejected: " + "x" * 400 + " your credit balance is too low")
    assert read_error(error, secret=None).kind is ProviderErrorKind.BAD_ANSWER


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_why_there_was_no_connection_is_named_by_the_system_and_tls_alone(library):
    class ConnectError(Exception):
        __module__ = library

    def cause(below):
        error = ConnectError("no connection for the question 'who am I?'")
        error.__cause__ = below
        return read_error(error, secret=None).cause

    expired = ssl.SSLCertVerificationError(1, "certificate verify failed (_ssl.c:1)")
    expired.verify_message = "certificate has expired"
    assert cause(expired) == "unreachable (certificate has expired)"
    assert (
        cause(ConnectionRefusedError(111, "Connect call failed ('10.0.0.1', 1)")) == "unreachable (Connection refused)"
    )
    assert cause(socket.gaierror(-2, "Name or service not known")) == "unreachable (Name or service not known)"
    assert cause(ValueError("who am I?")) == cause(OSError("who am I?")) == "unreachable"


def test_the_status_is_read_from_the_http_client_of_newer_libraries_too():
    class HTTPStatusError(Exception):
        __module__ = "httpx2"
        response = httpx.Response(503, headers={"retry-after": "7"})

    read = read_error(HTTPStatusError("busy"), secret=None)
    assert (read.kind, read.status, read.retry_after_s) == (ProviderErrorKind.OVERLOADED, 503, 7.0)


def test_no_key_is_shown_whosever_it_is():
    error = ValueError("Incorrect key sk-proj-of-somebody-else-9, see http://me:hunter2@proxy/ for model gpt-4o-mini")
    read = read_error(error, secret="sk-of-ours")
    assert read.message == "Incorrect key …, see http://…@proxy/ for model gpt-4o-mini"


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"Retry-After-Ms": "250"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "-5"}, 0.0),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:07 GMT"}, 7.0),
        ({}, None),
    ],
)
def test_a_wait_in_milliseconds_goes_before_one_in_seconds(headers, wait_s):
    response = httpx.Response(429, headers=headers, request=httpx.Request("POST", "http://127.0.0.1/"))
    error = httpx.HTTPStatusError("slow down", request=response.request, response=response)
    assert read_error(error, secret=None, now=NOW).retry_after_s == wait_s
