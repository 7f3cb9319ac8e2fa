"""Tokens: a rough upper estimate of a text's tokens without any model's tokenizer.

Weights a character, in hundredths of a token, at or above what byte-pair encodings of current models need for ordinary
texts (English 0.2, Hindi 1.0, Tamil 1.4, Burmese 2.0, Amharic 2.5, emoji 2.7 by cl100k): an estimate too high costs a
second call, one too low a call that fails. Only random strings of letters need more than this estimate.
"""

from __future__ import annotations

from .memory import CodePoints

_LETTER, _MARK, _DIGIT, _ALPHABET, _INDIC, _WIDE, _RARE = 35, 75, 100, 125, 150, 160, 300
_BLOCKS = (
    (0x080, _MARK),
    (0x250, _MARK),  # Latin with accents
    (0x900, _ALPHABET),  # Greek, Cyrillic, Hebrew, Arabic
    (0xE00, _INDIC),
    (0x1E00, _RARE),  # Thai to Ethiopic and Khmer
    (0x2000, _ALPHABET),  # Latin additional, as in Vietnamese
    (0x3000, _WIDE),  # punctuation and symbols
    (0xE000, _WIDE),  # Chinese, Japanese, Korean
    (0x110000, _RARE),
)


def _weight(code: int) -> str:
    """The character that stands for the weight of a code point."""
    character = chr(code)
    if character.isascii():
        return chr(_LETTER if character.isalpha() or character == " " else _DIGIT if character.isdigit() else _MARK)
    return chr(next(weight for end, weight in _BLOCKS if code < end))


_WEIGHTS = CodePoints(_weight)
_ALL = (_LETTER, _MARK, _DIGIT, _ALPHABET, _INDIC, _WIDE, _RARE)


def estimate(text: str) -> int:
    """Tokens of a text, rather too high; 0 for an empty one.

    >>> estimate("How can I help you today?")
    10
    """
    weighed = text.translate(_WEIGHTS)
    return -(-sum(weight * weighed.count(chr(weight)) for weight in _ALL) // 100)


def characters(tokens: int) -> int:
    """The most characters that a text of so many tokens can have; a longer one needs no estimate to be too long.

    >>> characters(7), estimate("a" * 20), estimate("a" * 21)
    (20, 7, 8)
    """
    return tokens * 100 // min(_ALL)
