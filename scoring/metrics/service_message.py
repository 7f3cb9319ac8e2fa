"""Service message: what a provider, a client or a framework puts where an answer should be, in several languages.

``Credit balance is too low``, ``Connection error.``, ``Maximum number of rounds reached``: such texts bear no mark of
an error, and a run that ends with one has answered nothing. A text counts as one only if it opens with a known message
and goes on with little, and if nothing that was asked or that a tool returned speaks of the same: to a bank's customer
a balance is an answer. What is not known passes: a missed message is cheaper than an answer that is called none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Final

_LONGEST: Final = 400
"""Characters of a text that may be a message; what is longer explains something."""
_SHORT: Final = 600
"""Longest request or result, in characters, that a single shared word links to a message's subject."""
_MOST_LOOKED_AT: Final = 20_000
_AROUND: Final = " *_`'\"“”‘’"
_QUOTES: Final = re.compile(
    r"\bhttp\b|status|error[ -](?:message|code)|exception|translat|traduc|tradui|übersetz|\bmean(?:s|ing)?\b|bedeut"
    r"|significa|signifie|翻译|翻訳|意味|意思",
    re.IGNORECASE,
)
"""A short request with one of these may be answered by a message that is quoted."""
_OPENING: Final = re.compile(
    r"\W*(?:(?:(?:api|http|llm|model|openai|anthropic|internal)\s+)?(?:error|fehler|erreur|errore)"
    r"(?:\s+code)?[:\s]*(?:[45]\d\d)?\s*[:\-–]*\s*"
    r"|[45]\d\d\s+|(?:[\w.]+(?:error|exception))\s*:\s*|error code: [45]\d\d - |terminating run \([^)]*\):?\s*"
    r"|(?:execution|run|agent|chat|task)? ?(?:halted|terminated|stopped|aborted)\s*[:–-]\s*)?\W*",
    re.IGNORECASE,
)
"""What clients write before a message."""

ACCOUNT: Final = "an account's limit"
GAVE_UP: Final = "the framework gave up"
"""A maximum of rounds, steps or time is reached."""


class _Known:
    """Messages about one subject: how they open, and words by which a request or a result speaks of the same.

    Their patterns are compiled when the first answer is looked at: they take 1.3 MB and 12 ms.
    """

    def __init__(self, kind: str, subject: str, *openings: str) -> None:
        self.kind, self._subject, self._openings = kind, subject, openings

    @cached_property
    def opens(self) -> re.Pattern[str]:
        return re.compile(f"(?:{'|'.join(self._openings)})", re.IGNORECASE)

    @cached_property
    def subject(self) -> re.Pattern[str]:
        return re.compile(self._subject, re.IGNORECASE)


@cache
def _messages() -> tuple[_Known, ...]:
    """The messages of ``service_messages.txt``."""
    text = files("sidejudge.scoring").joinpath("metrics", "service_messages.txt").read_text(encoding="utf-8")
    head, *kinds = text.split("\n= ")
    parts = dict(re.findall(r"^<([A-Z_]+)> (.*)$", head, re.MULTILINE))
    whole = (re.sub(r"<([A-Z_]+)>", lambda name: parts[name[1]], kind) for kind in kinds)
    return tuple(_Known(*kind.splitlines()) for kind in map(str.strip, whole))


def service_message(text: str, asked: Iterable[str] = (), results: Iterable[str] = ()) -> str | None:
    """What kind of service message a text is, in few words; None where it is none.

    Args:
        text: What stands in the answer's place.
        asked: What was asked. A text on the subject of the question is an answer.
        results: What tools returned. If one speaks of an account's limit, a text about that is an answer.

    >>> service_message("Credit balance is too low")
    "an account's limit"
    >>> service_message("Credit balance is too low", ["What is my credit balance?"]) is None
    True
    """
    stated = " ".join(text.split()).strip(_AROUND)
    if not stated or len(stated) > _LONGEST:
        return None
    known = _opened_by(stated)
    if known is None:
        return None
    texts = chain(asked, results if known.kind == ACCOUNT else ())
    return None if any(_speaks_of(known, each) for each in texts) else known.kind


@lru_cache(maxsize=16)  # several steps of a run return the same text
def _opened_by(stated: str) -> _Known | None:
    """The first kind of message that a text opens with."""
    begins = _OPENING.match(stated)
    starts = {0, begins.end() if begins else 0}
    return next((known for known in _messages() if any(known.opens.match(stated, start) for start in starts)), None)


def _speaks_of(known: _Known, text: str) -> bool:
    if len(text) <= _SHORT:
        return known.subject.search(text) is not None or _QUOTES.search(text) is not None
    return known.opens.search(" ".join(text[:_MOST_LOOKED_AT].split())) is not None


def texts_in(value: object, most: int = 50) -> Iterator[str]:
    """The first texts in a value and names of its fields, however deep, in no particular order."""
    waiting = [value]
    while waiting and most:
        held = waiting.pop()
        if isinstance(held, str):
            most -= 1
            yield held
        elif isinstance(held, dict):
            waiting += [*held, *held.values()]
        elif isinstance(held, list | tuple):
            waiting += held
