"""A transcript as moments (speaker, text, time). Structured turns are taken as they are; text is read line by line.

Text may carry time stamps (``[01:23]``, ``(00:12)``) and speakers (``Agent:``) at the start of a line or, for the
common names of the two parties, anywhere in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .facts import timestamps
from .lexicon import AGENT_WORDS, CUSTOMER_WORDS
from .text import fold_digits, tokens

_MAX_LABEL = 60
_TIME = r"\d{1,3}:[0-5]\d(?::[0-5]\d)?(?:[.,]\d{1,3})?"
_STAMP = rf"[\[(]?{_TIME}[\])]?"
_STAMPED = re.compile(rf"\s*{_STAMP}\s*")
_SECONDS = re.compile(r"\s*(\d{1,6})(?:\.\d+)?\s*s?\s*")
_HEAD = re.compile(
    rf"\s{{0,9}}(?:({_STAMP})\s{{0,3}}[-–—|]?\s{{0,3}})?(?:([^\n:.!?।\[(]{{1,40}})\s?({_STAMP})?\s?:(?!\d))?"
)
_LABELS = "|".join(sorted(map(re.escape, AGENT_WORDS | CUSTOMER_WORDS), key=len, reverse=True))
_INNER = re.compile(rf"(?<!\w)(?:[\[(]{_TIME}[\])]|(?:{_LABELS})\s?:)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?।。])\s")


@dataclass(frozen=True, slots=True)
class Moment:
    """One utterance. ``role`` is ``agent``, ``customer`` or None; ``at`` is seconds from its time stamp.

    ``speaker`` is the speaker's label as written.
    """

    text: str
    role: str | None = None
    at: int | None = None
    speaker: str | None = None


def role_of(speaker: str | None) -> str | None:
    """``agent`` or ``customer`` for a speaker's label, None when it names neither (or both).

    >>> role_of("Agent (Priya)")
    'agent'
    """
    words = set(tokens((speaker or "")[:_MAX_LABEL]))
    agent, customer = bool(words & AGENT_WORDS), bool(words & CUSTOMER_WORDS)
    return None if agent == customer else "agent" if agent else "customer"


def moments_of_turns(turns: Iterable[tuple[str, str | None, str | None]]) -> list[Moment]:
    """Moments from (text, speaker, time stamp)."""
    return [Moment(text, role_of(speaker), _time_of((at or "")[:_MAX_LABEL]), speaker) for text, speaker, at in turns]


def _time_of(at: str) -> int | None:
    """Seconds of a turn's time: a time stamp or a number of seconds. None for any other format."""
    if (seconds := _SECONDS.fullmatch(at)) is not None:
        return int(seconds[1])
    return timestamps(at)[0] if _STAMPED.fullmatch(at) else None


def moments_of_text(text: str) -> list[Moment]:
    """Moments from plain text: a line, or a labelled part of one; a line without a label is split into sentences."""
    found: list[Moment] = []
    for line in fold_digits(text).splitlines():
        for part in _parts(line):
            head = _HEAD.match(part)
            stamp = head and (head[1] or head[3])
            speaker = head and head[2]
            stated = part[head.end() :] if head else part
            at = timestamps(stamp)[0] if stamp else None
            if speaker or stamp:
                found.append(Moment(stated, role_of(speaker), at, speaker or None))
            else:
                found.extend(Moment(sentence) for sentence in _SENTENCE_END.split(part) if sentence.strip())
    return found


def _parts(line: str) -> list[str]:
    """A line cut before every time stamp in brackets and every label of a party; ``[01:23] Agent:`` stays together."""
    cuts = [0]
    stamped_until = -1
    for match in _INNER.finditer(line):
        before = line[cuts[-1] : match.start()]
        of_stamp = match.start() - stamped_until <= 2 or _STAMPED.fullmatch(before) is not None
        label_after_stamp = of_stamp and match[0][0] not in "[("
        if not label_after_stamp and before.strip():
            cuts.append(match.start())
        stamped_until = match.end() if match[0][0] in "[(" else -1
    return [line[start:end] for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True)]
