"""entity: keywords and topics found in a call against the configured list and the reference (seed 000, Task 2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TypeGuard

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import MAX_LABELS, label, labels
from sidejudge.scoring.lexical.text import WordIndex, normalise, normalise_each, tokens
from sidejudge.scoring.metrics.metric import Metric, metric
from sidejudge.scoring.metrics.settle import NoValueError, settled, unavailable
from sidejudge.scoring.metrics.structure import items, over, reference, structure_compliance
from sidejudge.scoring.questions.kinds import SameEntity
from sidejudge.scoring.questions.question import Begun, Steps
from sidejudge.scoring.result.reason import Reason, own
from sidejudge.scoring.result.result import Bands, Blocker, Effect, Method, Result, Scored, Unavailable, at_least, count
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, derived_pass_mark, weights_in_words

SOURCE = "seed 000, Task 2"
_PARTS = re.compile("[ _-]")
_TEXT = frozenset({str})
_NOT_CONFIGURED = Unavailable(
    Reason("neither config.keywords, config.topics nor expected_outcome.valid_entity_set is given")
)
_NAMED = 5
"""Most entities that a reason names; the details hold more."""


class Detection:
    """One side of a comparison: precision, recall and F1 of a found set against an expected one.

    Both empty: 1.0 each. Exactly one empty: 0.0 each (rubrics §1.2).

    >>> Detection(frozenset({"hello", "refund", "cancel"}), frozenset({"hello", "refund", "account"})).f1
    0.6666666666666666
    """

    __slots__ = ("_expected", "_found", "_matching", "details", "reason")

    def __init__(self, found: frozenset[str], expected: frozenset[str]) -> None:
        # Three metrics show the same reason and details, so they are made here, once.
        self._found, self._expected, self._matching = len(found), len(expected), len(found & expected)
        self.reason = Reason(
            "{n} of {found} found match, of {all} expected", n=self._matching, found=self._found, all=self._expected
        )
        self.details: Mapping[str, object] = {
            "missed": labels(sorted(expected - found)),
            "extra": labels(sorted(found - expected)),
        }
        """The missed and the surplus names."""

    @property
    def precision(self) -> float:
        return self._share_of(self._found)

    @property
    def recall(self) -> float:
        return self._share_of(self._expected)

    @property
    def f1(self) -> float:
        # 2PR / (P + R) with both ratios written out, so that equal counts give equal numbers.
        total = self._found + self._expected
        return 2 * self._matching / total if total else 1.0

    def _share_of(self, side: int) -> float:
        if side:
            return self._matching / side
        return 0.0 if self._found or self._expected else 1.0


def names(value: Json, key: str) -> frozenset[str]:
    """The strings of a list as a set after text normalisation: duplicates count once."""
    return _normalised(items(value, key))


def _normalised(found: Sequence[Json]) -> frozenset[str]:
    texts = found if _is_texts(found) else [item for item in found if isinstance(item, str)]
    return frozenset(normalise_each(texts))


def detected_keywords(case: Case) -> frozenset[str]:
    """Keywords that the model reported."""
    return names(case.output.value, "detected_keywords")


def detected_topics(case: Case) -> frozenset[str]:
    """Topics that the model reported."""
    return names(case.output.value, "detected_topics")


def expected_keywords(case: Case) -> frozenset[str]:
    """Keywords of the reference."""
    return _expected(case, "detected_keywords")


def expected_topics(case: Case) -> frozenset[str]:
    """Topics of the reference."""
    return _expected(case, "detected_topics")


def detected(case: Case) -> frozenset[str]:
    """Keywords and topics that the model reported, together."""
    return case.once(detected_keywords) | case.once(detected_topics)


def expected_entities(case: Case) -> frozenset[str]:
    """Keywords and topics of the reference, together."""
    return case.once(expected_keywords) | case.once(expected_topics)


def configured_entities(case: Case) -> frozenset[str]:
    """``config.keywords`` ∪ ``config.topics``, or ``config.entities``; else the reference's ``valid_entity_set``.

    A given value that is no list (``keywords: "loan"``) is a mistake; the next key is not tried.
    """
    lists: dict[str, Sequence[Json]] = {}
    for key in ("keywords", "topics", "entities"):
        given = case.config.get(key)
        if given is not None and not _is_texts(given):
            raise _not_texts(f"config.{key}")
        lists[key] = given or []
    truth = case.expected_content
    valid = truth.get("valid_entity_set") if isinstance(truth, dict) else None
    if valid is not None and not _is_texts(valid):
        raise _not_texts("expected_outcome.valid_entity_set")
    listed = [*lists["keywords"], *lists["topics"]] or lists["entities"]
    if listed:
        return _normalised(listed)
    if valid is None:
        raise NoValueError(_NOT_CONFIGURED)
    case.once(expected_entities)  # a reference with a broken list is held against no model
    return _normalised(valid)


def _not_texts(field: str) -> NoValueError:
    return unavailable(Reason("{field} is not a list of strings", field=own(field)))


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and _TEXT.issuperset(map(type, value))


def _expected(case: Case, key: str) -> frozenset[str]:
    truth = reference(case)
    found = truth.get(key) if isinstance(truth, dict) else None
    if not _is_texts(found):
        raise _not_texts(f"expected_outcome.{key}")
    return _normalised(found)


def keyword_detection(case: Case) -> Detection:
    """The model's keywords against the reference's, which is read first: without one no output is."""
    expected = case.once(expected_keywords)
    return Detection(case.once(detected_keywords), expected)


def topic_detection(case: Case) -> Detection:
    """The model's topics against the reference's, likewise."""
    expected = case.once(expected_topics)
    return Detection(case.once(detected_topics), expected)


def _share(name: str, both: Detection) -> Scored:
    return Scored(value=getattr(both, name), reason=both.reason, details=both.details)


@metric(
    title="Configured Entity Compliance",
    formula="entities_from_configured_list / total_entities_model_detected",
    source=f"{SOURCE}, Metric 7; rubrics §4",
    bands=at_least(good=1.0, acceptable=0.95),
    undefined="neither case nor reference has a list of configured entities, or what it has is no list of strings",
)
def configured_entity_compliance(case: Case) -> Result:
    """Of the entities that the model reported, keywords and topics together, the share in the configured list."""
    allowed = configured_entities(case)
    found = case.once(detected)
    if not found:
        return Scored(value=1.0, reason=Reason("no entity detected"))
    outside = sorted(found - allowed)
    return Scored(
        value=1.0 - len(outside) / len(found) if outside else 1.0,
        reason=Reason(
            "{n} of {all} are configured; not configured: {names}",
            n=len(found) - len(outside),
            all=len(found),
            names=", ".join(labels(outside, _NAMED)),
        )
        if outside
        else Reason("{n} of {all} are configured", n=len(found), all=len(found)),
        details={"not_configured": labels(outside)},
    )


@metric(
    title="Fabricated Entity Count",
    formula="entities in model output absent from both transcript and expected_outcome; symbols alone literally",
    source=f"{SOURCE}, Blocker; rubrics §4",
    bands=count(passes=0, warns=2),
    unit="entities",
    bounds=(0.0, None),
    undefined="there is no expected outcome, or an entity outside it and no transcript",
)
def fabricated_entity_count(case: Case) -> Result:
    """Entities reported that stand neither in the reference nor, word by word, in what was spoken."""
    expected = case.once(expected_entities)
    doubtful = case.once(detected) - expected
    if doubtful and case.spoken_text is None:
        return Unavailable(Reason("no transcript to look entities up in"))
    spoken = _Spoken(case.spoken_text or "") if doubtful else None
    made_up = sorted(name for name in doubtful if spoken and not spoken.has(name))
    return Scored(
        value=len(made_up),
        reason=Reason("in neither transcript nor reference: {names}", names=", ".join(labels(made_up, _NAMED)))
        if made_up
        else "",
        details={"fabricated": labels(made_up)},
    )


class _Spoken:
    """The words spoken in a call, to look entities up."""

    def __init__(self, text: str) -> None:
        self._spoken = text
        self._plain = text.lower() if text.isascii() else ""

    @cached_property
    def _words(self) -> WordIndex:
        return WordIndex(self._spoken)

    @cached_property
    def _text(self) -> str:
        return normalise(self._spoken)

    def has(self, name: str) -> bool:
        """Whether every word of the entity, split at space, ``_`` and ``-``, was spoken; symbols alone literally.

        ``name`` is normalised.
        """
        if name.isascii() and name.isalnum():  # one word, as it is; between blanks it is found without an index
            return f" {name} " in self._plain or self._words.has_word(name)
        words = [word for part in _PARTS.split(name) for word in tokens(part)]
        return all(map(self._words.has_word, words)) if words else name in self._text


@metric(
    title="Cross-Language Match Rate",
    formula="(equal after normalisation + nearest by multilingual embedding, cosine >= 0.80, one to one) / expected",
    source="seed 000, Scorecard (undefined there); rubrics §4",
    bands=Bands((("good", 0.90),), "fail"),
    methods=(Method.EXACT, Method.EMBEDDING),
    undefined="there is no expected outcome, or not every entity matches by text and there are no embeddings",
)
def cross_language_match_rate(case: Case) -> Begun:
    """Of the reference's entities, the share that the model reported in any language."""
    wanted, found = case.once(expected_entities), case.once(detected)
    by_text = len(wanted & found)
    open_ones = tuple(sorted(wanted - found))
    if not open_ones:
        by_words = Reason("all {n} matched by text", n=len(wanted))
        return Scored(value=1.0 if wanted or not found else 0.0, reason=by_words)
    others = tuple(sorted(found - wanted))
    if not others:
        return Scored(
            value=by_text / len(wanted),
            reason=Reason("{n} by text, of {all}; the model reported nothing else", n=by_text, all=len(wanted)),
            details={"matched": {}, "missed": labels(open_ones)},
        )
    return _across_languages(by_text, open_ones, others)


def _across_languages(by_text: int, open_ones: tuple[str, ...], others: tuple[str, ...]) -> Steps:
    wanted = by_text + len(open_ones)
    replies = yield (SameEntity(open_ones, others),)
    (matches,), method, judgements = settled(replies, lambda value: _read_matches(value, len(open_ones), len(others)))
    paired = {name: others[at] for name, at in zip(open_ones, matches, strict=True) if at is not None}
    return Scored(
        value=(by_text + len(paired)) / wanted,
        method=method,
        reason=Reason("{n} by text and {paired} across languages, of {all}", n=by_text, paired=len(paired), all=wanted),
        details={
            "matched": {label(name): label(found_as) for name, found_as in islice(paired.items(), MAX_LABELS)},
            "missed": labels(name for name in open_ones if name not in paired),
        },
        judgements=judgements,
    )


def _read_matches(value: object, wanted: int, found: int) -> tuple[int | None, ...]:
    if not isinstance(value, tuple | list) or len(value) != wanted:
        raise ValueError(f"expected {wanted} matches")
    used = [at for at in value if at is not None]
    if any(type(at) is not int or not 0 <= at < found for at in used) or len(set(used)) != len(used):
        raise ValueError("matches must be different indexes of what was found")
    return tuple(value)


def _f1_family(
    what: str, compare: Callable[[Case], Detection], bands: Bands, first: int
) -> tuple[Metric, Metric, Metric]:
    """Precision, recall and F1 of keywords or of topics: one card each."""
    shares = {
        "precision": (
            f"Of the {what}s that the model reported, the share that stands in the reference.",
            f"{what}s_also_in_expected_outcome / total_{what}s_model_detected",
        ),
        "recall": (
            f"Of the reference's {what}s, the share that the model reported.",
            f"{what}s_also_in_expected_outcome / total_{what}s_in_expected_outcome",
        ),
        "f1": (
            f"Harmonic mean of precision and recall of the {what}s.",
            "2 × precision × recall / (precision + recall)",
        ),
    }
    precision, recall, f1 = (
        Metric(
            id=f"{what}_{share}",
            title=f"{what.title()} Detection {share.title()}",
            meaning=meaning,
            formula=formula,
            source=f"{SOURCE}, Metric {number}; rubrics §4",
            measure=over(compare)(partial(_share, share)),
            bands=bands,
            undefined=f"there is no expected outcome with detected_{what}s",
        )
        for number, (share, (meaning, formula)) in enumerate(shares.items(), first)
    )
    return precision, recall, f1


def _valid_entity_set(case: Case) -> None:
    truth = reference(case)
    if isinstance(truth, dict) and not _is_texts(truth.get("valid_entity_set", [])):
        raise _not_texts("expected_outcome.valid_entity_set")


response_structure_compliance = structure_compliance(expected_entities, _valid_entity_set)
keyword_precision, keyword_recall, keyword_f1 = _f1_family(
    "keyword", keyword_detection, at_least(good=0.90, acceptable=0.85), 1
)
topic_precision, topic_recall, topic_f1 = _f1_family("topic", topic_detection, at_least(good=0.88, acceptable=0.80), 4)


_CRITERIA = (
    Criterion(metric=response_structure_compliance, prerequisite=True),
    Criterion(metric=keyword_precision),
    Criterion(metric=keyword_recall),
    Criterion(metric=keyword_f1, weight=0.47),
    Criterion(metric=topic_precision),
    Criterion(metric=topic_recall),
    Criterion(metric=topic_f1, weight=0.29),
    # Only its table and the scorecard name this blocker: the number stands, the verdict does not pass (rubrics §1.4).
    Criterion(
        metric=configured_entity_compliance, weight=0.24, blocker=Blocker(effect=Effect.DISQUALIFIED, below=0.95)
    ),
    Criterion(metric=fabricated_entity_count, blocker=Blocker(effect=Effect.INVALID, above=2)),
    Criterion(metric=cross_language_match_rate),
)

RUBRIC = Rubric(
    id="entity",
    title="Entity Analysis",
    source="seed 000, Task 2; rubrics §4",
    formula=f"{weights_in_words(_CRITERIA)}; "
    "invalid if response_structure_compliance = 0 or fabricated_entity_count > 2",
    criteria=_CRITERIA,
    pass_mark=derived_pass_mark(*_CRITERIA),
)
