r"""Regular expressions of a scenario: RE2's, with a bound on the work of a search.

Both the pattern (a scenario that comes with a trace) and the text (a tool's argument) may come from outside. RE2 never
backtracks: a search takes at most ``Pattern.steps`` times the bytes of the text. The syntax is RE2's
(https://github.com/google/re2/wiki/Syntax): no look-around, no back-references; ``\d \w \s \b`` mean ASCII, so
``\pL`` stands for a letter of any script and ``\pN`` for a digit. ``$`` is the very end of the text. A pattern is
searched for anywhere in the text, as in JSON Schema; anchor it with ``^…$``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol

from sidejudge.scoring.errors import SidejudgeError

MAX_TEXT: Final = 4096
"""Most characters of a text; a longer one matches nothing."""
MAX_PATTERN: Final = 1000
"""Most characters of a pattern."""
MAX_STEPS: Final = 4000
"""Most instructions of a compiled pattern. ``x{1000}`` has 1003, a letter of any script (``\\pL``) some 1,200."""
_MEMORY: Final = 256 * 1024
"""Most bytes of one compiled pattern, including its cache while searching."""
_UNLIKE_PYTHON: Final = (
    (re.compile(r"\{,\d+\}"), "write the lower bound, such as {0,3}"),
    (re.compile(r"(?:[^\\]|^)(?:\\\\)*\\Z"), r"write $ for the end of the text, in place of \Z"),
    (re.compile(r"\(\?<?[=!]"), "look-around is not supported (RE2 syntax); state it as patterns of their own"),
    (re.compile(r"(?:[^\\]|^)(?:\\\\)*\\[1-9]|\(\?P="), "back-references are not supported (RE2 syntax)"),
    (re.compile(r"(?:[^\\]|^)(?:\\\\)*\\C"), r"\C is not supported; write . or (?s:.)"),
    (re.compile(r"\\[bB][^\x00-\x7f]|[^\x00-\x7f]\\[bB]"), r"\b knows ASCII letters only; write (^|\PL) or (\PL|$)"),
)
"""Syntax of Python's ``re`` that RE2 refuses with few words, or reads differently."""


class _Compiled(Protocol):
    @property
    def programsize(self) -> int: ...

    def search(self, text: bytes) -> object: ...


class PatternError(SidejudgeError, ValueError):
    """The pattern is malformed, too large, or uses unsupported syntax; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern; build it with ``compile_pattern``. ``steps`` bounds the work of a search for each byte."""

    source: str
    steps: int = field(compare=False)
    _compiled: _Compiled = field(repr=False, compare=False)

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text; never in a text over ``MAX_TEXT`` characters."""
        return len(text) <= MAX_TEXT and self._compiled.search(text.encode(errors="replace")) is not None


@lru_cache(maxsize=64)
def compile_pattern(source: str) -> Pattern:
    """Read a pattern.

    Raises:
        PatternError: it is malformed, over ``MAX_PATTERN`` characters or ``MAX_STEPS`` instructions, or uses syntax
            that RE2 does not support.

    >>> compile_pattern("^ORD-[0-9]{4}$").search("ORD-9987")
    True
    """
    if len(source) > MAX_PATTERN:
        raise PatternError(f"longer than {MAX_PATTERN} characters")
    for unlike, remedy in _UNLIKE_PYTHON:
        if unlike.search(source):
            raise PatternError(remedy)
    import re2  # noqa: PLC0415  # 2.6 MB, for those who have patterns

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MEMORY
    try:
        compiled = re2.compile(source.encode(), options)
    except UnicodeEncodeError:
        raise PatternError("holds half of a surrogate pair; write the whole character") from None
    except re2.error as error:
        cause = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise PatternError(_TOO_LARGE if "too large" in cause else cause) from None
    if compiled.programsize > MAX_STEPS:
        raise PatternError(_TOO_LARGE)
    return Pattern(source, compiled.programsize, compiled)


_TOO_LARGE: Final = f"needs more than {MAX_STEPS} steps; use smaller repeat counts, or [a-z] in place of \\pL"
