"""Text in one comparable form, and its words. All comparisons of texts in all rubrics use it.

All functions take time linear in their input, whatever it holds: transcripts come from untrusted traces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

from .memory import CodePoints

_SPACE = ord(" ")
_MAX_MARKS = 30
"""Combining marks kept after one base character, as in Unicode's stream-safe text format (UAX #15, section 13).

Normalisation sorts marks, in time quadratic in the length of a run: real languages use four, an attack uses a million.
"""
_GROWTH = 2
"""How much longer than a text its normal form may be; in any language it is hardly longer."""
_PHRASES = {code: unicodedata.normalize("NFKC", chr(code))[:4] for code in (0xFDFA, 0xFDFB)}
"""The two characters that expand to a phrase, of 18 and 8 letters; any other one expands to 6 letters at most."""
_SUSPECT = re.compile(r"[^\x00-\x7f]{256}")


def _digit(code: int) -> int:
    """The ASCII digit for a digit of any script; every other code point as it is."""
    value = unicodedata.decimal(chr(code), None)
    return code if value is None else ord("0") + value


def _letter(code: int) -> int:
    """A letter, a digit or a mark that belongs to a letter as it is; a space for everything else."""
    return code if unicodedata.category(chr(code))[0] in "LNM" else _SPACE


_DIGITS = CodePoints(_digit)
_LETTERS = CodePoints(_letter)
_NAME = 48
"""Most characters of a text that counts as a name or keyword."""


def fold_digits(text: str) -> str:
    """Digits of any script as ASCII, after NFKC; nothing else changes.

    >>> fold_digits("₹४९ um ０１:２３")
    '₹49 um 01:23'
    """
    return text if text.isascii() else _folded(text)


@lru_cache(maxsize=8)
def _folded(text: str) -> str:
    """Cached for a moment, because several metrics read the same long text of a case in turn."""
    return _compatible(_stream_safe(text)).translate(_DIGITS)


def normalise(text: str) -> str:
    r"""NFKC, casefolded, digits of any script as ASCII, white space collapsed (rubrics §1.7).

    >>> normalise("  Straße\u00a0 ४९ ")
    'strasse 49'
    """
    if len(text) <= _NAME:
        return _normalised_name(text)
    return _normalised(text) if text.isascii() else _normalised_text(text)


@lru_cache(maxsize=8)
def _normalised_text(text: str) -> str:
    return _normalised(text)


def normalise_each(names: Sequence[str]) -> list[str]:
    """Each of these names normalised.

    Plain ones are folded together: ten fresh names take 1.3 µs, one by one 7 µs.
    """
    together = "\n".join(names)
    if together.isascii():
        together = together.lower()
        plain = " ".join(together.split()) == together.replace("\n", " ")  # no white space but single blanks
        if plain and together.count("\n") == len(names) - 1:
            return together.split("\n")
    return list(map(normalise, names))


def _normalised(text: str) -> str:
    if text.isascii():  # nearly every text, and nothing but case and white space to fold
        return " ".join(text.lower().split())
    return " ".join(_compatible(fold_digits(text).casefold()).split())


_normalised_name = lru_cache(maxsize=4096)(_normalised)
"""Cached, because the same keywords are configured, expected and found in many cases."""


def _compatible(text: str) -> str:
    """NFKC, cut at ``_GROWTH`` times the length, against an attack with characters that expand to many."""
    return unicodedata.normalize("NFKC", text.translate(_PHRASES))[: _GROWTH * len(text) + _NAME]


def tokens(text: str) -> list[str]:
    """The words and numbers of a text, normalised, in order; vowel signs stay with their letters.

    >>> tokens("Agent's K.Y.C. — एजेंट ने")
    ['agent', 's', 'k', 'y', 'c', 'एजेंट', 'ने']
    """
    return normalise(text).translate(_LETTERS).split()


_ENDINGS = ("ing", "ed", "es", "en", "s", "e")


def without_ending(word: str) -> str:
    """A word of five letters or more without a common ending, of which three letters at least are left."""
    fitting = (ending for ending in _ENDINGS if word.endswith(ending) and len(word) - len(ending) >= 3)
    return word.removesuffix(next(fitting, "")) if len(word) > 4 else word


def same(left: str, right: str) -> bool:
    """Whether two texts are equal once normalised."""
    return left == right or normalise(left) == normalise(right)


_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x9FFF),
    (0x20000, 0x3FFFF),
)


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces (Thai, Khmer, Chinese, Japanese, …)."""
    code = ord(character)
    return code >= 0x0E00 and any(low <= code <= high for low, high in _UNSPACED)


def pieces(words: list[str]) -> Iterator[str]:
    """Comparable units: words unchanged; runs of unspaced scripts as overlapping pairs of characters.

    >>> list(pieces(["refund", "退款吧"]))
    ['refund', '退款', '款吧']
    """
    for word in words:
        if word.isascii() or len(word) < 3 or not is_unspaced(word[0]):
            yield word
        else:
            yield from (word[i : i + 2] for i in range(len(word) - 1))


class WordIndex:
    """The words of one long text, in which many phrases are looked up."""

    def __init__(self, text: str) -> None:
        self._in_order = words = tokens(text)
        self.words = frozenset(words)
        unspaced = not text.isascii() and any(is_unspaced(word[0]) for word in self.words)
        self._unspaced = "".join(words) if unspaced else ""

    @cached_property
    def _spaced(self) -> str:
        return f" {' '.join(self._in_order)} "

    def has_phrase(self, phrase: str) -> bool:
        """Whether the words of the phrase occur next to each other; punctuation and case do not count."""
        words = tokens(phrase)
        if not words:
            return False
        if f" {' '.join(words)} " in self._spaced:
            return True
        return bool(self._unspaced) and is_unspaced(words[0][0]) and "".join(words) in self._unspaced

    def has_word(self, word: str) -> bool:
        """Whether this word occurs (as part of a run, in scripts without spaces)."""
        return word in self.words or (bool(self._unspaced) and is_unspaced(word[0]) and word in self._unspaced)


def _stream_safe(text: str) -> str:
    if not _SUSPECT.search(text):
        return text
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MAX_MARKS:
            kept.append(character)
    return "".join(kept)
