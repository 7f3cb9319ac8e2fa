"""Redaction: personal data and keys in a text are replaced by the name of their kind, irreversibly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sidejudge.scoring.errors import SidejudgeError

from .privacy import KINDS, coarse_pattern

if TYPE_CHECKING:
    import re2

MAX_PATTERN: Final = 1_000
"""Most characters of a custom pattern."""
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which JSON may hold."""
_MEMORY: Final = 1 << 20
"""Most bytes of a compiled pattern."""


class RedactionError(SidejudgeError, ValueError):
    """A kind that does not exist, or a pattern that RE2 does not take."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is replaced: kinds of ``privacy.KINDS``, and matches of custom patterns (RE2), which become ``[redacted]``.

    Raises ``RedactionError`` for an unknown kind or a pattern that cannot be used.
    """

    kinds: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    _compiled: tuple[re2._Regexp[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unknown = next((kind for kind in self.kinds if kind not in KINDS), None)
        if unknown is not None:
            raise RedactionError(f"{unknown!r} is not a kind; valid are {', '.join(KINDS)}")
        object.__setattr__(self, "_compiled", tuple(map(_compiled, self.patterns)))

    def may_apply(self, encoded: bytes) -> bool:
        """Whether a UTF-8 text in these bytes may hold something to replace; true when in doubt.

        >>> Redaction(("key",)).may_apply(b"a risk-free task"), Redaction(("key",), ("free",)).may_apply(b"a task")
        (False, True)
        """
        return bool(self.patterns) or (bool(self.kinds) and coarse_pattern(self.kinds).search(encoded) is not None)

    def apply(self, text: str) -> tuple[str, int]:
        """The text with all findings replaced, and their number.

        >>> Redaction(("email", "card")).apply("ann@example.com paid with 4111 1111 1111 1111")
        ('[email] paid with [card]', 2)
        """
        found = sorted(self._places(text))
        parts: list[str] = []
        end = replaced = 0
        for begin, until, name in found:
            if begin >= end:  # of two that overlap the first stands for both
                parts += (text[end:begin], f"[{name}]")
                replaced += 1
            end = max(end, until)
        return "".join((*parts, text[end:])), replaced

    def _places(self, text: str) -> Iterator[tuple[int, int, str]]:
        for kind in self.kinds:
            for begin, end in KINDS[kind](text):
                yield begin, end, kind
        whole = _HALVES.sub("\ufffd", text) if self._compiled else text  # RE2 reads UTF-8, which has no such halves
        for pattern in self._compiled:
            for match in pattern.finditer(whole):
                if match.end() > match.start():
                    yield match.start(), match.end(), "redacted"


def redaction_of(kinds: Sequence[str], patterns: Sequence[str]) -> Redaction | None:
    """The redaction of these kinds and patterns; None when there is nothing to look for."""
    return Redaction(tuple(kinds), tuple(patterns)) if kinds or patterns else None


def _compiled(source: str) -> re2._Regexp[str]:
    if len(source) > MAX_PATTERN:
        raise RedactionError(f"a pattern has {len(source)} characters, at most {MAX_PATTERN}")
    import re2  # noqa: PLC0415  # 2.6 MB, for those who have patterns

    options = re2.Options()
    options.max_mem, options.log_errors = _MEMORY, False
    try:
        return re2.compile(source, options)
    except re2.error as error:
        message = error.args[0] if error.args else ""
        shown = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        raise RedactionError(f"{source[:60]!r} is no pattern in RE2's syntax: {shown}") from None
