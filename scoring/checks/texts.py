"""Checks of words: equal, contains, begins with, number of words, regular expressions (RE2: linear time)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.scenario.json_schema import json_equal
from sidejudge.scoring.trace.span import Json

from .check import Check, CheckError, Subject, TextTest, ValueTest, keys, limits, text, texts, whole, within

_MOST_PROGRAM: Final = 1_000_000
"""Most bytes of a compiled pattern: a pattern such as ``(a{1000}){1000}`` is refused."""
_YAML_ESCAPES: Final = frozenset("\a\b\x1b\0")
"""What YAML makes of \\a, \\b, \\e and \\0 in double quotes; no pattern that somebody wrote holds one."""
_MOST_PATTERN: Final = 2000


def _equals(value: Json) -> ValueTest:
    if value is None:
        raise CheckError("must be the text or the JSON value to be equal to")
    if isinstance(value, str):
        wanted = value.strip()
        return lambda found: isinstance(found, str) and found.strip() == wanted
    return lambda found: json_equal(found, value)


def _contains(value: Json) -> TextTest:
    wanted = text(value)
    return lambda found: wanted in found


def _icontains(value: Json) -> TextTest:
    wanted = text(value).casefold()
    return lambda found: wanted in found.casefold()


def _any_of(wanted: Sequence[str]) -> TextTest:
    """Whether a text contains one of these; the reason names the first that it contains."""
    findings = [Scored(value=1.0, reason=Reason("found: {text}", text=quoted(label(each)))) for each in wanted]
    return lambda found: next((finding for each, finding in zip(wanted, findings, strict=True) if each in found), False)


def _all_of(wanted: Sequence[str]) -> TextTest:
    """Whether a text contains all of these; the reason names the first that is missing."""
    findings = [Scored(value=0.0, reason=Reason("not found: {text}", text=quoted(label(each)))) for each in wanted]
    return lambda found: next(
        (finding for each, finding in zip(wanted, findings, strict=True) if each not in found), True
    )


def _of_texts(contains: Callable[[Sequence[str]], TextTest], *, any_case: bool = False) -> Callable[[Json], TextTest]:
    """The check that reads a list of texts; with ``any_case``, upper and lower case are equal."""

    def check(value: Json) -> TextTest:
        if not any_case:
            return contains(texts(value))
        test = contains([each.casefold() for each in texts(value)])
        return lambda found: test(found.casefold())

    return check


def _starts_with(value: Json) -> TextTest:
    wanted = texts([each.lstrip() for each in texts(value)])
    return lambda found: found.lstrip().startswith(wanted)


def _ends_with(value: Json) -> TextTest:
    wanted = texts([each.rstrip() for each in texts(value)])
    return lambda found: found.rstrip().endswith(wanted)


def pattern(value: Json) -> TextTest:
    """Whether a pattern of RE2's syntax matches anywhere; takes time linear in the text for any pattern."""
    given = text(value)
    if len(given) > _MOST_PATTERN:
        raise CheckError(f"is a pattern of more than {_MOST_PATTERN} characters")
    if _YAML_ESCAPES & set(given):
        raise CheckError(
            "holds a control character: YAML reads \\b itself in double quotes; write the pattern in single ones"
        )
    import re2  # noqa: PLC0415  # 2.6 MB, for those who have patterns

    options = re2.Options()
    options.max_mem = _MOST_PROGRAM
    options.log_errors = False
    try:
        compiled = re2.compile(given.encode(errors="replace"), options)  # bytes: no offsets to be counted in characters
    except re2.error as error:
        stated = (
            error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        )
        raise CheckError(
            f"is not a pattern that RE2 takes: {stated} (no look-around, no back-references; syntax: RE2)"
        ) from None
    search = compiled.search
    return lambda found: search(found.encode(errors="replace")) is not None


def _word_count(value: Json) -> TextTest:
    if type(value) is int:
        exact = whole(value)
        return lambda found: len(found.split()) == exact
    if not isinstance(value, dict):
        raise CheckError("must be a whole number such as 50, without quotation marks, or a map with min, max")
    low, high = limits(value)
    return lambda found: within(len(found.split()), low, high)


def _length(value: Json) -> TextTest:
    low, high = limits(keys(value, ("min", "max")))
    return lambda found: within(len(found), low, high)


CHECKS: Final = (
    Check("equals", "Equal", "it is this text (surrounding white space aside), or this JSON value",
          "a text, or any JSON value", _equals, subject=Subject.VALUE),
    Check("contains", "Contains a text", "this text stands in it", "a text", _contains),
    Check("icontains", "Contains a text, in any case", "this text stands in it, in upper or lower case", "a text",
          _icontains),
    Check("contains-any", "Contains one of several", "one of these texts stands in it", "texts", _of_texts(_any_of)),
    Check("icontains-any", "Contains one of several, in any case",
          "one of these texts stands in it, in upper or lower case", "texts", _of_texts(_any_of, any_case=True)),
    Check("contains-all", "Contains all", "all of these texts stand in it", "texts", _of_texts(_all_of)),
    Check("icontains-all", "Contains all, in any case", "all of these texts stand in it, in upper or lower case",
          "texts", _of_texts(_all_of, any_case=True)),
    Check("starts-with", "Begins with", "it begins with this text (or one of these), leading white space aside",
          "a text, or several", _starts_with),
    Check("ends-with", "Ends with", "it ends with this text (or one of these), trailing white space aside",
          "a text, or several", _ends_with),
    Check("regex", "Matches a pattern", "this pattern matches somewhere in it",
          "a regular expression of RE2's syntax", pattern),
    Check("word-count", "Number of words", "it has this many words, split at white space",
          "a whole number, or {min, max}", _word_count),
    Check("length", "Number of characters", "it has this many characters", "{min, max}", _length),
)  # fmt: skip
"""The checks of words."""
