"""Checks of language: which language a text is in, how easily it reads, whether it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, Protocol

from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Method, Scored, Unavailable
from sidejudge.scoring.trace.span import Json

from .check import Check, CheckError, Finding, TextTest, flag, keys, library, linear, number, texts, within

if TYPE_CHECKING:
    import re2

_LEAST_LETTERS: Final = 20
"""Fewest letters from which a language can be identified."""
_READ: Final = 20_000
_SENTENCE: Final = r"[.!?]+(?:\s|$)"
_WORD: Final = r"[A-Za-z]+(?:'[A-Za-z]+)?"
_VOWELS: Final = r"[aeiouy]+"
_OPENING: Final = 500
"""Characters at the beginning of an answer that are searched for a refusal."""


class _Identifier(Protocol):
    nb_classes: Sequence[str]

    def classify(self, text: str, /) -> tuple[str, float]: ...


@cache
def _identifier() -> _Identifier:
    """The model of languages, loaded once, which takes a second."""
    langid = library("py3langid.langid", "checks", "language")
    found: _Identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    return found


def _language(value: Json) -> TextTest:
    identifier = _identifier()
    wanted = texts(value)
    for code in wanted:
        if code not in identifier.nb_classes:
            raise CheckError(f"is not a language: {code!r}; use a code of ISO 639-1, such as en, de or hi")

    def test(found: str) -> Finding:
        if sum(map(str.isalpha, found[:_READ])) < _LEAST_LETTERS:
            return Unavailable(Reason("fewer than {least} letters", least=_LEAST_LETTERS))
        language, _ = identifier.classify(found[:_READ])
        looks = Reason("looks like {language}", language=own(language))
        return Scored(value=float(language in wanted), method=Method.LEXICAL, reason=looks)

    return test


def reading_ease(text: str) -> float | None:
    """Flesch's reading ease of an English text: 206.835 - 1.015 words/sentence - 84.6 syllables/word (Flesch 1948).

    Syllables are groups of vowels, without a silent e at the end. None for a text without words.
    """
    words = [match.group(0).lower() for match in linear(_WORD).finditer(text)]
    if not words:
        return None
    sentences = max(1, len(list(linear(_SENTENCE).finditer(text))))
    syllables = sum(map(_syllables, words))
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)


def _syllables(word: str) -> int:
    groups = len(list(linear(_VOWELS).finditer(word)))
    silent = word.endswith("e") and not word.endswith("le") and groups > 1
    return max(1, groups - silent)


def _readability(value: Json) -> TextTest:
    given = keys(value, ("min", "max"), short="min")
    if not given:
        raise CheckError("must be the least reading ease (60 is plain English), or {min, max}")
    low, high = (
        None if given.get(name) is None else number(given[name], name, least=-100.0, most=122.0)
        for name in ("min", "max")
    )

    def test(found: str) -> Finding:
        ease = reading_ease(found[:_READ])
        if ease is None:
            return Unavailable(Reason("no words in Latin letters"))
        stated = Reason("reading ease {ease:.0f}", ease=ease)
        return Scored(value=float(within(ease, low, high)), method=Method.LEXICAL, reason=stated)

    return test


@cache
def _refusals() -> re2._Regexp[str]:
    """One pattern of all lines of ``refusals.txt``."""
    lines = files("sidejudge.scoring").joinpath("checks", "refusals.txt").read_text(encoding="utf-8").splitlines()
    return linear(f"(?i){'|'.join(f'(?:{line})' for line in lines if line and not line.startswith('#'))}")


def _refusal(value: Json) -> TextTest:
    flag(value)
    search = _refusals().search
    return lambda found: search(found[:_OPENING].replace("\u2019", "'")) is not None


CHECKS: Final = (
    Check("language", "Language", "it is written in this language (or one of these), as a model of byte n-grams sees "
          "it", "codes of ISO 639-1", _language, method=Method.LEXICAL, extra="checks",
          undefined="its target is not known, or has fewer than 20 letters",
          source="langid.py (Lui and Baldwin 2012), as py3langid"),
    Check("readability", "Reading ease", "Flesch's reading ease of the English text lies within these limits (60 is "
          "plain English)", "the least ease, or {min, max}", _readability, method=Method.LEXICAL,
          undefined="its target is not known, or has no words in Latin letters",
          source="Flesch 1948; syllables are groups of vowels"),
    Check("refusal", "Refusal", "its first 500 characters decline the request in the usual phrases (of English; the "
          "plainest ones of German, French and Spanish); mostly used as not-refusal", "true", _refusal,
          method=Method.LEXICAL, source="promptfoo's is-refusal"),
)  # fmt: skip
"""The checks of language."""
