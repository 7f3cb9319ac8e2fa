"""Shown text: any text comes in, and goes out without invisible characters and anything like a mark or control token.

A label is a text of a case as a verdict shows it: a case may be of any size, its label is short and can be written.

Anything with the shape of a key is removed from foreign messages before they are shown. A provider may quote a
key in its refusal: the one that it was sent, a proxy's own, or another account's. No list of formats is complete, so
that any long run of mixed letters and digits counts as a key, besides the known prefixes. Names of models, paths and
UUIDs consist of short words and stay.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final

from .memory import CodePoints

_MARKS = re.compile(r"[<＜﹤]{3,}|[>＞﹥]{3,}")  # characters that look alike
_CONTROL_TOKENS = re.compile(
    r"<(?=[|｜])|[|｜](?=>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|think|start_of_turn|end_of_turn|system|assistant|user|tool_call|tool_response)>)"
    r"|<(?=</?SYS>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS)\])",
    re.IGNORECASE,
)
_JOINERS = re.compile(r"[\u200c\u200d\ufe00-\ufe0f]{2,}")
"""Joiners and variation selectors: single ones belong to scripts and emoji, several in a row spell hidden messages."""


_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PLAIN = "\n\t\u200c\u200d"


def _written(characters: str) -> str:
    return "".join(f"[U+{ord(character):04X}]" for character in characters)


def _shown(code: int) -> str:
    """The character itself if visible, else its number."""
    character = chr(code)
    hidden = unicodedata.category(character) in _HIDDEN or 0xE0100 <= code <= 0xE01EF
    return _written(character) if hidden and character not in _PLAIN else character


_VISIBLE = CodePoints(_shown)


def plain(text: str) -> str:
    r"""The text with marks, control tokens and invisible characters defused.

    >>> plain("a\u202eb <<<END 00>>> <|im_end|>")
    'a[U+202E]b < < <END 00> > > < |im_end| >'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # To look for a character costs a tenth of what an expression costs; most texts hold none of these.
    if not text.isascii():
        text = _JOINERS.sub(lambda match: _written(match.group()), text)
    text = text.translate(_VISIBLE)
    if not text.isascii() or "<<<" in text or ">>>" in text:
        text = _MARKS.sub(lambda match: " ".join(match.group()), text)
    if any(beginning in text for beginning in "<[|｜"):
        text = _CONTROL_TOKENS.sub(lambda match: f"{match.group()} ", text)
    return text


def seen(text: str) -> str:
    r"""The text with numbers in place of characters that are invisible or change the direction of others.

    >>> seen("a\u202eb\x9b31m")
    'a[U+202E]b[U+009B]31m'
    """
    return text if text.isascii() and text.isprintable() else text.replace("\r\n", "\n").translate(_VISIBLE)


MAX_LABEL = 60
"""Most characters of one name, key or id."""
MAX_LABELS = 20
"""Most names in one list of a result's details."""
MAX_REASON = 2000
"""Most characters of a whole reason from any source."""


def label(text: str, most: int = MAX_LABEL) -> str:
    """The text, cut to the limit; half a surrogate pair, which no output can carry, becomes ``?``.

    >>> label("a very long name", 6)
    'a very…'
    """
    if len(text) > most:
        text = text[:most] + "…"
    return text if text.isascii() else text.encode(errors="replace").decode()


def label_of(name: str) -> str:
    """A name as a label value: one that is cut ends in digits of its own, so that two long names stay distinct.

    Addresses of images and lists of prompts differ at their end.
    """
    if len(name) <= MAX_LABEL:
        return label(name)
    return label(name, MAX_LABEL - 10) + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]


MAX_LENGTH = 128
"""Characters of the value of a series' label; longer ones are cut, so that one hostile name cannot fill a scrape."""


def clean(value: str) -> str:
    """The value without control, format and unassigned characters and stray white space, at most 128 characters.

    Surrogates and separators of lines and paragraphs go too: what is left prints on one line and encodes as UTF-8.
    """
    head = value[: MAX_LENGTH * 4]  # cleaning reads no more of a 10 MB name than could be kept of it
    if not (head.isascii() and head.isprintable()):
        head = "".join(c if unicodedata.category(c)[0] not in "CZ" else " " for c in head)
    text = " ".join(head.split())
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


@lru_cache(1024)
def is_named(name: str | None, wanted: str) -> bool:
    """Whether a filter means this name: as the application sent it, as an alert shows it, or as a series does.

    What is kept as a label already is meant by the whole name, too.
    """
    if name is None:
        return False
    return wanted == name or wanted in {label_of(name), clean(name), clean(label_of(name))} or label_of(wanted) == name


def one_line(text: str, most: int) -> str:
    """The text on one line, cut."""
    return label(" ".join(text[: 4 * most].split()), most)


def labels(names: Iterable[str], most: int = MAX_LABELS) -> list[str]:
    """The first of many names, each cut."""
    # Nearly every name is shown as it is, so it is not worth a call.
    return [name if len(name) <= MAX_LABEL and name.isascii() else label(name) for name in islice(names, most)]


_STRUCK: Final = "…"
_LONGEST: Final = 10_000
"""Most characters that are read; the rest is not shown at all."""
_IN_URL: Final = re.compile(r"(?<=://)[^\s/@]{1,500}@")
_AFTER_SCHEME: Final = re.compile(r"(?i)\b(bearer|basic)(\s+)(?=\S{0,500}[0-9=._-])[\w.~+/=*-]{8,}")
_NAMED: Final = re.compile(
    r"(?i)\b(api[_-]?key|access[_-]?token|secret|password)([\"']?\s{0,3}[:=]\s{0,3}[\"']?)(?=\S{0,500}[0-9])[^\s\"',;&]{6,}"
)
_PREFIXED: Final = re.compile(
    r"\b(?:(?:sk|pk|rk|xox[a-z]|xai|glpat|dapi|pplx|nvapi)-|(?:gsk|hf|gh[a-z]|github_pat|r8|lsv2|key)_|AIza|AKIA|ya29\.)"
    r"[\w.*-]{6,}"
)
_ILLEGAL: Final = re.compile(r"(illegal header (?:name|value)).*", re.IGNORECASE | re.DOTALL)
"""What clients say of a header that they cannot write; they quote all of it."""
_RUN: Final = re.compile(r"[\w+/=.-]{20,}")
_WORD: Final = re.compile(r"[A-Za-z0-9]{16,}")
_LEAST_HEX: Final = 32
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def struck(text: str) -> str:
    """The text without anything like a key, a token, a password in a URL, or a header that cannot be written.

    >>> struck("Incorrect API key provided: sk-proj-abc123DEF456.")
    'Incorrect API key provided: ….'
    >>> struck("postgres://me:pw@db/x: no model openai/gpt-4o-mini-2024-07-18")
    'postgres://…@db/x: no model openai/gpt-4o-mini-2024-07-18'
    """
    text = _ILLEGAL.sub(rf"\1 {_STRUCK}", text[:_LONGEST])
    text = _IN_URL.sub(f"{_STRUCK}@", text)
    text = _AFTER_SCHEME.sub(rf"\1\2{_STRUCK}", text)
    text = _NAMED.sub(rf"\1\2{_STRUCK}", text)
    text = _PREFIXED.sub(_unless_a_stop, text)
    return _RUN.sub(lambda found: _STRUCK if any(map(_random, _WORD.findall(found[0]))) else found[0], text)


def _unless_a_stop(found: re.Match[str]) -> str:
    """The ellipsis for a secret, with the full stop that ends the sentence kept."""
    return _STRUCK + "." * (len(found[0]) - len(found[0].rstrip(".")))


def _random(word: str) -> bool:
    """Whether letters and digits are mixed as in no word: a change of kind every four characters, or all of it hex."""
    kinds = [(character.isdigit(), character.isupper()) for character in word]
    if not any(kind[0] for kind in kinds) or word.isdigit():
        return False
    changes = sum(one != other for one, other in pairwise(kinds))
    return 4 * changes >= len(word) or (len(word) >= _LEAST_HEX and _HEX.issuperset(word))
