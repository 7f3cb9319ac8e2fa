"""What a provider's failure is called, and how long it asks to be left alone."""

from __future__ import annotations

from datetime import UTC, datetime

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


def test_no_key_is_shown_whosever_it_is():
    error = ValueError("Incorrect key sk-proj-of-somebody-else-9, see http://me:hunter2@proxy/ for model gpt-4o-mini")
    read = read_error(error, secret="sk-of-ours")
    assert read.message == "Incorrect key …, see http://…@proxy/ for model gpt-4o-mini"
