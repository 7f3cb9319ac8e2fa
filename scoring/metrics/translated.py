"""A translation and its reference: sentences matched by ``source_id``, terms and names by their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.mention import Mentions
from sidejudge.scoring.lexical.text import normalise, same
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.trace.jsontext import kind
from sidejudge.scoring.trace.span import Json

from .settle import unavailable
from .structure import Matched, items, items_by_id, reference, shown_by_name, strict_key


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSentence:
    """A sentence of the reference. ``given`` is the model's translation of it, None where there is none.

    A blank text is no translation, nor is a copy of the source where the reference differs from it (``copied``).
    """

    source_id: Json
    source: str
    expected: str
    given: str | None
    copied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The reference's sentences, and the model's texts: the full text, and each known sentence unchanged."""

    sentences: tuple[TranslatedSentence, ...]
    matched: Matched
    full: str
    texts: tuple[str, ...]

    @property
    def given(self) -> str:
        """The model's translated sentences as one text, one on each line."""
        return "\n".join(sentence.given for sentence in self.sentences if sentence.given)

    @property
    def delivered(self) -> str:
        """All that the model delivered: the full translation, and its sentences where they differ from it."""
        sentences = "\n".join(text for text in self.texts if text.strip())
        if not self.full.strip() or _without_spaces(self.full) == _without_spaces(sentences):
            return self.full if self.full.strip() else sentences
        return f"{self.full}\n\n{sentences}" if sentences else self.full

    def remarks(self) -> dict[str, object]:
        """Remarks on what was ignored or is no translation."""
        return shown_by_name(
            missing=(s.source_id for s in self.sentences if s.given is None and not s.copied),
            copied=(s.source_id for s in self.sentences if s.copied),
            unknown_ids=self.matched.unknown,
            repeated_ids=self.matched.repeated,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """A term or name of the reference: its required handling, the one that the model reports, and whether it shows."""

    name: str
    expected: str
    given: str | None
    borne_out: bool

    @property
    def correct(self) -> bool:
        """Whether the handling is right; a self-report that the model's own text contradicts is wrong."""
        return self.given is not None and same(self.given, self.expected) and self.borne_out

    def __str__(self) -> str:
        stated = "not reported" if self.given is None else f"as {self.given[:40]!r}"
        if self.given is not None and same(self.given, self.expected):
            return f"{self.name[:40]} ({stated}, which does not stand in the translation)"
        return f"{self.name[:40]} ({stated}, expected {self.expected[:40]!r})"


def read_translation(case: Case) -> Translation:
    """The reference's sentences with the model's; ``NoValueError`` without a reference that can be used."""
    wanted, matched = items_by_id(case, "sentence_translations", "source_id", _unusable, "a source_id")
    output = case.output.value
    full = output.get("full_translation") if isinstance(output, dict) else None
    keys = (strict_key(item["source_id"]) for item in wanted)
    known = [matched.by_id[key] for key in keys if key in matched.by_id]
    return Translation(
        sentences=tuple(_sentence(item, matched) for item in wanted),
        matched=matched,
        full=full if isinstance(full, str) else "",
        texts=tuple(_text(item, "translated_text") for item in known),
    )


def read_handled(case: Case, key: str, name_key: str) -> tuple[Handled, ...]:
    """Terms (or names) of the reference with the model's, the first of each; none where the reference has no list."""
    translation, expected = read_translation(case), reference(case)
    listed = expected.get(key) if isinstance(expected, dict) else None
    if listed is not None and not isinstance(listed, list):
        raise unavailable(Reason("expected_outcome.{key} is not a list", key=own(key)))
    wanted: dict[str, tuple[str, str]] = {}
    for index, item in enumerate(listed or ()):
        name, handled_as = _text(item, name_key), _text(item, "handled_as")
        if not name.strip() or not handled_as.strip():
            why = "expected_outcome.{key}[{at}]: {name} and handled_as are not both texts"
            raise unavailable(Reason(why, key=own(key), at=index, name=own(name_key)))
        known = wanted.setdefault(normalise(name), (name, handled_as))
        if not same(known[1], handled_as):
            why = "expected_outcome.{key}[{at}]: {name} stands twice, handled differently"
            raise unavailable(Reason(why, key=own(key), at=index, name=quoted(repr(name[:40]))))
    mentions = Mentions((translation.full, *translation.texts))
    stated = _first_of_each(items(case.output.value, key), name_key)
    return tuple(
        Handled(name=name, expected=handled_as, given=stated.get(normal), borne_out=mentions.has(handled_as))
        for normal, (name, handled_as) in wanted.items()
    )


def _unusable(item: Json) -> str | None:
    if not isinstance(item, dict) or kind(item.get("source_id")) not in ("string", "number"):
        return "source_id is missing"
    if not _text(item, "translated_text").strip():
        return "translated_text is missing"
    return None


def _sentence(item: dict[str, Json], matched: Matched) -> TranslatedSentence:
    source, expected = _text(item, "source_text"), _text(item, "translated_text")
    given = _text(matched.by_id.get(strict_key(item["source_id"])), "translated_text")
    copied = bool(given.strip()) and same(given, source) and not same(source, expected)
    return TranslatedSentence(
        source_id=item["source_id"],
        source=source,
        expected=expected,
        given=given if given.strip() and not copied else None,
        copied=copied,
    )


def _text(item: Json, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, str) else ""


def _first_of_each(given: Sequence[Json], name_key: str) -> dict[str, str]:
    stated: dict[str, str] = {}
    for item in given:
        if name := _text(item, name_key).strip():
            stated.setdefault(normalise(name), _text(item, "handled_as"))
    return stated


def _without_spaces(text: str) -> str:
    return "".join(normalise(text).split())
