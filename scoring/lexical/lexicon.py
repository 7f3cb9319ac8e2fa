"""Word lists for lexical answers, all in normalised form: those of ``lexicon.txt``. Data, not rules.

Full lists for English, German, Spanish and Hindi. For French, Portuguese, Italian and Dutch only the words that keep a
denial from being read as its opposite: negations, parties, verbs of speech, the commonest acts of speech.
"""

from __future__ import annotations

from importlib.resources import files

from .text import normalise


def word_list(*lines: str) -> frozenset[str]:
    """The words of these lines, normalised."""
    return frozenset(normalise(word) for line in lines for word in line.split())


_TEXT = files("sidejudge.scoring").joinpath("lexical", "lexicon.txt").read_text(encoding="utf-8")
_LISTS = {name: body.strip() for name, _, body in (part.partition("]\n") for part in _TEXT.split("\n[")[1:])}

STOPWORDS = word_list(_LISTS["stopwords"])
"""Words that carry no content."""

AGENT_WORDS = word_list(_LISTS["agent_words"])
CUSTOMER_WORDS = word_list(_LISTS["customer_words"])

VAGUE = word_list(_LISTS["vague"])
"""Praise and generalities: they refer to no moment."""

RUBRIC_WORDS = word_list(_LISTS["rubric_words"])
"""Talk about the scorecard itself: neither for nor against."""

REPORTING = word_list(_LISTS["reporting"])
"""Verbs that introduce a statement: with one of them, one matching content word is enough."""

PARTICLES = word_list(_LISTS["particles"])
"""Words that reverse a statement; ``t`` is the rest of *n't*."""

DISAVOWALS = word_list(_LISTS["disavowals"])
"""Verbs of denial or refusal; they may follow their object (*the refund was denied*)."""

OMISSIONS = word_list(_LISTS["omissions"])
"""Verbs of omission: a thing was left undone."""

NEGATIONS = PARTICLES | DISAVOWALS | OMISSIONS
"""All words by which a claim becomes a denial."""

UNSPACED_NEGATIONS = tuple(_LISTS["unspaced_negations"].split())
"""Negations in scripts without spaces, where they occur within a run; longer ones precede their own beginnings."""

ABBREVIATIONS = {"dob": ("date", "of", "birth"), "acct": ("account",)}
"""A written abbreviation and its spoken words."""

_ACTS = _LISTS["acts"].splitlines()
ACTS: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = tuple(
    (word_list(cues), tuple(dict.fromkeys(phrases.split("|"))))
    for cues, phrases in zip(_ACTS[::2], _ACTS[1::2], strict=True)
)
"""Acts of speech: words that name one → phrases by which it is performed, in any of the languages."""

CONTRASTS = word_list(_LISTS["contrasts"])
"""Words at which a negation ends."""
