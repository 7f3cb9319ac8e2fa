"""translation: a call's translation against a human-verified one (seed 000, Task 4; rubrics §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.critical_facts import Drift, drift
from sidejudge.scoring.lexical.text import same
from sidejudge.scoring.metrics.metric import Measure, Metric, metric
from sidejudge.scoring.metrics.settle import (
    bounded,
    judgements_of,
    read_cosines,
    read_number,
    refuted,
    settle,
    settled,
    truth,
    unavailable,
)
from sidejudge.scoring.metrics.structure import over, response_structure_compliance, shown_items
from sidejudge.scoring.metrics.translated import TranslatedSentence, Translation, read_handled, read_translation
from sidejudge.scoring.questions.kinds import HowFluent, KeepsFact, OutcomeDrift, SentenceSimilarity
from sidejudge.scoring.questions.question import Answer, NoAnswer, Reply, Steps
from sidejudge.scoring.result.reason import Reason, own, quoted, together
from sidejudge.scoring.result.result import (
    Blocker,
    Effect,
    Judgement,
    Method,
    NotApplicable,
    Result,
    Scored,
    at_least,
)
from sidejudge.scoring.verdict.rubric import Criterion, Rubric, derived_pass_mark, weights_in_words

SOURCE = "seed 000, Task 4"
_UNDEFINED = "there is no expected outcome with sentence_translations"
FLUENCY_LEVELS = (0.0, 0.25, 0.50, 0.75, 1.0)
"""Incomprehensible, meaning obscured, noticeable errors, minor issues, native."""

_SHOWN = 20


def _ratio(count: float, translation: Translation) -> float:
    """Over the reference's sentences. None expected: 1 when none were given either, else 0 (rubrics §1.2)."""
    if translation.sentences:
        return count / len(translation.sentences)
    return 0.0 if translation.matched.unknown else 1.0


@metric(
    short="completeness_rate",
    title="Translation Completeness Rate",
    formula="translated_sentence_count / total_source_sentences",
    source=f"{SOURCE}, Metric 1; rubrics §6",
    bands=at_least(good=1.0, acceptable=0.95),
    undefined=_UNDEFINED,
)
@over(read_translation)
def translation_completeness_rate(translation: Translation) -> Result:
    """Share of the source's sentences that the model translated; blank or copied from the source is not."""
    done = sum(sentence.given is not None for sentence in translation.sentences)
    copied = sum(sentence.copied for sentence in translation.sentences)
    return Scored(
        value=_ratio(done, translation),
        reason=Reason("{n} of {all} sentences", n=done, all=len(translation.sentences))
        + (Reason("; {n} copied from the source", n=copied) if copied else ""),
        details=translation.remarks(),
    )


@metric(
    short="meaning_accuracy",
    title="Sentence-Level Meaning Accuracy",
    formula="mean over the reference's sentences of cosine_similarity(embedding(model_sentence), "
    "embedding(expected_outcome_sentence)), clamped to [0, 1]; 1 where both are equal after normalisation",
    source=f"{SOURCE}, Metric 2; rubrics §6",
    bands=at_least(good=0.85, acceptable=0.75),
    methods=(Method.EXACT, Method.EMBEDDING),
    undefined=f"{_UNDEFINED}, or a sentence differs from it and there are no embeddings",
)
def sentence_meaning_accuracy(case: Case) -> Steps:
    """How close in meaning each sentence is to the reference's, on average; a missing one is 0."""
    translation = read_translation(case)
    if not translation.sentences:
        return Scored(value=_ratio(0, translation), reason=Reason("the reference has no sentence"))
    # A text has cosine 1 to itself and a missing one is 0: neither needs a model.
    alike = {index: float(_alike(s)) for index, s in enumerate(translation.sentences) if s.given is None or _alike(s)}
    requested = {index: s for index, s in enumerate(translation.sentences) if index not in alike}
    method, judgements = Method.EXACT, judgements_of(())
    if requested:
        replies = yield (SentenceSimilarity(tuple((s.given or "", s.expected) for s in requested.values())),)
        (cosines,), method, judgements = settled(replies, lambda value: read_cosines(value, len(requested)))
        alike |= zip(requested, cosines, strict=True)
    total = sum(alike[index] for index in range(len(translation.sentences)))
    worst = sorted(alike, key=lambda index: (alike[index], index))[:_SHOWN]
    reported = [(shown_items([translation.sentences[index].source_id])[0], round(alike[index], 3)) for index in worst]
    return Scored(
        value=_ratio(total, translation),
        method=method,
        reason=Reason(
            "lowest of {all} sentences: {lowest}",
            all=len(translation.sentences),
            lowest=together((Reason("{id} ({value:g})", id=str(n), value=v) for n, v in reported[:3]), ", "),
        ),
        details={"lowest": [{"source_id": name, "similarity": value} for name, value in reported]},
        judgements=judgements,
    )


def _alike(sentence: TranslatedSentence) -> bool:
    return sentence.given is not None and same(sentence.given, sentence.expected)


def fluency_level(value: float) -> float:
    """The nearest of the five levels; half-way between two, the lower.

    >>> [fluency_level(value) for value in (0.8, 0.875, 0.9, 0.1)]
    [0.75, 0.75, 1.0, 0.0]
    """
    return min(FLUENCY_LEVELS, key=lambda level: (round(abs(value - level), 9), level))


@metric(
    title="Target Language Fluency Score",
    formula="judge's level, the nearest of 1.0 native, 0.75 minor issues, 0.50 noticeable errors, "
    "0.25 meaning obscured, 0.0 incomprehensible",
    source=f"{SOURCE}, Metric 3; rubrics §6, §9",
    bands=at_least(good=0.85, acceptable=0.70),
    methods=(Method.JUDGE,),
    undefined=f"{_UNDEFINED}, or no judge",
)
def target_language_fluency(case: Case) -> Steps:
    """Whether the translation is grammatical and natural in the target language, in five levels."""
    translation = read_translation(case)
    text = translation.delivered
    if not text.strip():
        if not translation.sentences:
            return NotApplicable(Reason("the reference has no sentence, and nothing was translated"))
        return Scored(value=0.0, reason=Reason("there is no translated text"))
    language = case.config.get("target_language")
    replies = yield (HowFluent(text, language if isinstance(language, str) and language.strip() else None),)
    (stated,), method, judgements = settled(replies, lambda value: read_number(value, 0.0, 1.0))
    return Scored(
        value=fluency_level(stated),
        method=method,
        reason=replies[0].reason,
        details={"answered": stated},
        judgements=judgements,
    )


def _preservation(key: str, name_key: str, what: str) -> Measure:
    def measure(case: Case) -> Result:
        handled = read_handled(case, key, name_key)
        if not handled:
            return NotApplicable(Reason("the reference has no {what}", what=own(what)))
        wrong = [each for each in handled if not each.correct]
        right = len(handled) - len(wrong)
        return Scored(
            value=right / len(handled),
            reason=Reason("{n} of {all} {what}s", n=right, all=len(handled), what=own(what))
            + (Reason("; wrong: {names}", names=quoted(", ".join(map(str, wrong[:5])))) if wrong else ""),
            details={"wrong": shown_items(each.name for each in wrong)},
        )

    return measure


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceTally:
    """Counts of critical facts: in the reference, omitted or changed, and added without replacing one."""

    expected: int
    omitted: tuple[str, ...]
    added: tuple[str, ...]
    additions: int

    @property
    def rate(self) -> float:
        """1 − drift, floored at 0. Nothing expected: 1 when nothing was added either, else 0 (rubrics §1.2).

        >>> SentenceTally(expected=4, omitted=("3–5 days", "escalated"), added=("7–10",), additions=0).rate
        0.5
        """
        drifted = len(self.omitted) + self.additions
        if not self.expected:
            return 0.0 if drifted else 1.0
        return max(0.0, 1.0 - drifted / self.expected)


def configured_facts(case: Case) -> tuple[str, ...]:
    """``config.critical_facts`` without repeats; empty when the case gives none: the reference's are read then."""
    listed = case.config.get("critical_facts")
    if listed is None:
        return ()
    if not isinstance(listed, list) or not all(isinstance(fact, str) and fact.strip() for fact in listed):
        raise unavailable(Reason("config.critical_facts is not a list of texts"))
    return tuple(dict.fromkeys(str(fact) for fact in listed))


@metric(
    short="critical_fact_rate",
    title="Critical Fact Preservation Rate",
    formula="1 − added_or_omitted_critical_facts / total_critical_facts_in_expected_outcome, at least 0",
    source=f"{SOURCE}, Metric 6; rubrics §6",
    bands=at_least(good=1.0, acceptable=0.97, otherwise="blocker"),
    methods=(Method.EXACT, Method.LEXICAL, Method.JUDGE),
    undefined=f"{_UNDEFINED}, or config.critical_facts has one without number, date or code, and there is no judge",
)
def critical_fact_preservation_rate(case: Case) -> Steps:
    """Whether numbers, dates, amounts, codes and outcomes are the reference's; a changed one counts once."""
    translation = read_translation(case)
    listed = configured_facts(case)
    drifts = [drift(s.expected, s.given or "", s.source) for s in translation.sentences]
    if listed:
        return (yield from _facts_of_config(listed, translation, drifts))
    return (yield from _facts_of_reference(translation, drifts))


def _facts_of_config(listed: tuple[str, ...], translation: Translation, drifts: list[Drift]) -> Steps:
    requested = tuple(KeepsFact(fact, translation.given) for fact in listed)
    # What was not translated at all keeps nothing.
    unasked = tuple(Answer(value=False, method=Method.LEXICAL) for _ in listed)
    replies = (yield requested) if translation.given else unasked
    against = refuted(requested, replies)
    tally = SentenceTally(
        expected=len(listed),
        omitted=tuple(question.fact for question in against),
        # In the place of an omission of the reference, critical or not, an addition is a change, and not counted.
        added=tuple(fact.text for each in drifts if each.additions for fact in each.added),
        additions=sum(each.additions for each in drifts),
    )
    found = settle(replies, truth)
    if not isinstance(found, tuple):
        lost = Reason("{n} of {all} facts are lost", n=len(against), all=len(listed))
        return bounded(found, lost, against.values(), at_most=tally.rate)
    _, method, judgements = found
    return _preserved(tally, method, judgements, {"facts": "config.critical_facts"})


def _facts_of_reference(translation: Translation, drifts: list[Drift]) -> Steps:
    tally = SentenceTally(
        expected=sum(len(each.expected) for each in drifts),
        omitted=tuple(fact.text for each in drifts for fact in each.omitted),
        added=tuple(fact.text for each in drifts for fact in each.added),
        additions=sum(each.additions for each in drifts),
    )
    if all(map(_alike, translation.sentences)):
        return _preserved(tally, Method.EXACT, (), {"facts": "read from the reference"})
    (reply,) = yield (OutcomeDrift(tuple((s.expected, s.given or "") for s in translation.sentences)),)
    if isinstance(reply, NoAnswer) and not reply.failed:
        # Outcomes are counted where there is a judge; numbers, dates and codes are a measure without them.
        return _preserved(tally, Method.LEXICAL, (), {"facts": "read from the reference", "outcomes": "not judged"})
    return _with_outcomes(tally, reply)


def _with_outcomes(tally: SentenceTally, reply: Reply) -> Result:
    ((outcomes, added),), method, judgements = settled([reply], _outcomes)
    lost = tuple(outcome for outcome, kept in outcomes if not kept)
    return _preserved(
        SentenceTally(
            expected=tally.expected + len(outcomes),
            omitted=tally.omitted + lost,
            added=tally.added + added,
            additions=tally.additions + len(added),
        ),
        method,
        judgements,
        {"facts": "read from the reference", "outcomes": len(outcomes)},
    )


def _outcomes(value: object) -> tuple[list[tuple[str, bool]], tuple[str, ...]]:
    """A judge's account of outcomes, read strictly: the reference's, each kept or not, and the added ones."""
    if not isinstance(value, Mapping):
        raise ValueError("not an object")  # noqa: TRY004  # an answer that breaks the contract
    stated, added = value.get("outcomes"), value.get("added")
    if not isinstance(stated, list) or not isinstance(added, list):
        raise ValueError("outcomes and added are not both lists")  # noqa: TRY004  # likewise
    if any(not isinstance(each, Mapping) for each in stated):
        raise ValueError("an outcome is not an object")
    named = [*(each.get("outcome") for each in stated), *added]
    if any(not isinstance(name, str) or not name.strip() for name in named):
        raise ValueError("an outcome has no text")
    return [(each["outcome"], truth(each.get("kept"))) for each in stated], tuple(added)


def _preserved(
    tally: SentenceTally, method: Method, judgements: tuple[Judgement, ...], details: dict[str, object]
) -> Scored:
    reason = Reason("{n} of {all} facts kept", n=tally.expected - len(tally.omitted), all=tally.expected)
    if tally.omitted:
        reason += Reason("; omitted or changed: {facts}", facts=", ".join(fact[:40] for fact in tally.omitted[:5]))
    if tally.additions:
        reason += Reason("; added: {facts}", facts=", ".join(fact[:40] for fact in tally.added[:5]))
    return Scored(
        value=tally.rate,
        method=method,
        reason=reason,
        details={
            "omitted": shown_items(tally.omitted[:_SHOWN]),
            "added": shown_items(tally.added[:_SHOWN]),
            "additions": tally.additions,
            **details,
        },
        judgements=judgements,
    )


domain_term_preservation_rate = Metric(
    id="domain_term_preservation_rate",
    short="domain_term_rate",
    title="Domain Term Preservation Rate",
    meaning="Share of the reference's codes, product and brand names that are handled as it handles them, in the text.",
    formula="correctly_handled_domain_terms / total_domain_terms_in_expected_outcome",
    source=f"{SOURCE}, Metric 4; rubrics §6",
    measure=_preservation("domain_terms_handled", "term", "domain term"),
    bands=at_least(good=0.95, acceptable=0.90, otherwise="blocker"),
    undefined=f"{_UNDEFINED}; not applicable without a domain term in it",
)
proper_noun_preservation_rate = Metric(
    id="proper_noun_preservation_rate",
    short="proper_noun_rate",
    title="Proper Noun Preservation Rate",
    meaning="Share of the reference's names of people and places that are rendered as it renders them, in the text.",
    formula="correctly_preserved_proper_nouns / total_proper_nouns_in_expected_outcome",
    source=f"{SOURCE}, Metric 5; rubrics §6",
    measure=_preservation("named_entities_handled", "entity", "proper noun"),
    bands=at_least(good=0.95, acceptable=0.90),
    undefined=f"{_UNDEFINED}; not applicable without a proper noun in it",
)

_CRITERIA = (
    Criterion(metric=response_structure_compliance, prerequisite=True),
    Criterion(metric=translation_completeness_rate, weight=0.10),
    Criterion(metric=sentence_meaning_accuracy, weight=0.35),
    Criterion(metric=target_language_fluency, weight=0.10),
    Criterion(metric=domain_term_preservation_rate, weight=0.20, blocker=Blocker(effect=Effect.INVALID, below=0.90)),
    Criterion(metric=proper_noun_preservation_rate, weight=0.10),
    Criterion(metric=critical_fact_preservation_rate, weight=0.15, blocker=Blocker(effect=Effect.INVALID, below=0.97)),
)

RUBRIC = Rubric(
    id="translation",
    title="Translation Analysis",
    source="seed 000, Task 4; rubrics §6",
    formula=f"{weights_in_words(_CRITERIA)}; "
    "invalid if response_structure_compliance = 0, domain_term_preservation_rate < 0.90 "
    "or critical_fact_preservation_rate < 0.97",
    criteria=_CRITERIA,
    pass_mark=derived_pass_mark(*_CRITERIA),
)
