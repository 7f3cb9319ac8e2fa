"""Check: a judge's answer is compared with what plain rules can decide.

A contradiction is a flag for people; it changes no score. It is raised only where figures, dates, names, quotes or ids
leave no doubt, so that the absence of a flag proves nothing. Work is bounded: texts that are too long to look up are
not flagged.

Figures are the numbers and dates that a text states; they are looked up in another text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.case.grounds import called_tools, ground_truth, sources, stated_scenario, text_or_json
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.lexical.claims import claims, words_of
from sidejudge.scoring.lexical.facts import MAX_TEXT, NumberInText, amounts, dates, disagree, numbers, same_date
from sidejudge.scoring.lexical.numerals import spoken_numbers
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.lexical.statement import MAX_STATEMENT, contradicts, read_statement, states_the_same
from sidejudge.scoring.lexical.text import WordIndex, normalise, same, tokens
from sidejudge.scoring.metrics.judge_metrics import ACCEPTABLE_SCORE
from sidejudge.scoring.questions import kinds
from sidejudge.scoring.questions.question import Answer, Question
from sidejudge.scoring.result.result import Unavailable

_MOST = 200
"""Most figures, and most dates, of one text that are looked up."""
_LONG_FIGURE = 4
"""Fewest digits of a figure whose match within a row of digits is no coincidence."""


@dataclass(frozen=True, slots=True)
class _Stated:
    """The figures and dates of a text. Long figures may be dictated, grouped, or part of a code."""

    values: frozenset[str]
    days: tuple[frozenset[str], ...]
    joined: str

    def lacks(self, figure: NumberInText) -> bool:
        digits = re.sub(r"\D", "", figure.text)
        return self.values.isdisjoint(figure.values) and (len(digits) < _LONG_FIGURE or digits not in self.joined)


@lru_cache(maxsize=4)
def _stated(known: str) -> _Stated:
    # Many claims are looked up in the same text.
    written_out = {value for number in numbers(known) for value in number.values}
    return _Stated(
        values=frozenset(written_out | spoken_numbers(words_of(known))),
        days=tuple(dict.fromkeys(dates(known))),
        joined=re.sub(r"[\s\W_]+", "", normalise(known)),
    )


def absent_from(text: str, known: str) -> str | None:
    """A figure or date of a text that the known text lacks."""
    if max(len(text), len(known)) > MAX_TEXT:
        return None
    days, given = [day for day in dates(text)[:_MOST] if day], figures(text)
    if not days and not given:
        return None
    stated = _stated(known)
    for day in days:
        if not any(same_date(day, other) for other in stated.days):
            return f"the date {min(day)}"
    absent = next(filter(stated.lacks, given), None)
    return f"the figure {label(absent.text, 30)}" if absent else None


def _is_specific(number: NumberInText) -> bool:
    """Whether it is an amount or has two digits: smaller numbers are counts, spelt out, or list positions."""
    return number.currency is not None or len(number.text) > 1


def figures(text: str) -> list[NumberInText]:
    """The first figures of a text that cannot be mistaken for a count."""
    return [number for number in numbers(text[:MAX_TEXT]) if _is_specific(number)][:_MOST]


_WORD_FOR_WORD = 3
"""Fewest words of a text whose exact match elsewhere is no coincidence."""
_CLAIMS = 200
_ALL_SUPPORTED = 0.95
"""Seed 003: 1.0 all information supported by sources, 0.8 minor unsupported claims."""


def contradiction(case: Case, question: Question, value: object) -> str | None:
    """How the case contradicts the answer, in a few words; None when nothing decidable does.

    ``value`` is as ``JudgeRequest.read`` returns it.

    >>> contradiction(Case(case_id="c", model_output=""), kinds.SameHighlight("Refund of $49", "Refund of $99"), True)
    'held to be the same, with other figures'
    """
    match question:
        case kinds.CitesTranscript(reason):
            return _of_citation(case, reason, value)
        case kinds.BorneOut(reason):
            return _of_reason(case, reason, value)
        case kinds.Supported(claim) | kinds.CorrectHighlight(claim):
            return _of_claim(case, claim, value)
        case kinds.SameIntent(expected, found) | kinds.SameHighlight(expected, found) | kinds.SameFact(expected, found):
            return _of_pair(expected, found, value)
        case kinds.SummaryClaims(stated) | kinds.StatedClaims(stated):
            return _of_extraction(stated, value)
        case kinds.KeepsFact():
            return _of_kept_fact(case, question, value)
        case kinds.OutcomeDrift(pairs):
            return _of_outcomes(pairs, value)
        case kinds.GradeAnswer() | kinds.GradeQuality() | kinds.VerifyClaims() | kinds.GradeAgent():
            return _of_output(case, question, value) if isinstance(value, Mapping) else None
        case _:
            return None


def _of_citation(case: Case, reason: str, value: object) -> str | None:
    """Contradiction of a denied citation: a reason that quotes the transcript or names a time in it does cite it."""
    index = case.transcript_index
    if value is not False or index is None or not index.can_read(reason):
        return None
    found = [claim for claim in claims(reason) if claim.anchored and not claim.negated]
    if not found or not index.can_check(reason, found):
        return None
    return "held to cite nothing, and quotes the transcript" if not any(map(index.fault_of_anchors, found)) else None


def _of_reason(case: Case, reason: str, value: object) -> str | None:
    index = case.transcript_index
    if value is not True or index is None or not index.can_read(reason):
        return None
    found = [claim for claim in claims(reason) if not claim.negated]
    if not index.can_check(reason, found):
        return None
    for claim in found:
        # Names are given by their capitals, which is not certain enough.
        fault = index.fault_of_anchors(claim) or index.fault_of_facts(replace(claim, names=()))
        if fault is not None:
            return f"held to be factual, and {label(fault, 120)}"
    return None


def _of_claim(case: Case, claim: str, value: object) -> str | None:
    if value is True:
        known = _known(case.transcript_text, case.expected_outcome)
        absent = absent_from(claim, known) if known is not None and case.transcript is not None else None
        return f"held to be true, and {absent} stands neither in transcript nor in reference" if absent else None
    if value is False and len(tokens(claim)) >= _WORD_FOR_WORD:
        stated = case.reference_index is not None and WordIndex(text_or_json(case.expected_outcome)).has_phrase(claim)
        return "held to be unsupported, and stands in the reference word for word" if stated else None
    return None


def _of_pair(expected: str, found: str, value: object) -> str | None:
    if max(len(expected), len(found)) > MAX_STATEMENT or isinstance(value, str) or value is None:
        return None
    wanted, given = read_statement(expected), read_statement(found)
    if value in (False, 0) and states_the_same(wanted, given) and (wanted.roots or wanted.figures):
        return "held to differ, in the same words"
    if value in (True, 1) and (contradicts(given, wanted) or disagree(amounts(expected), amounts(found))):
        return "held to be the same, with other figures"
    return None


def _of_extraction(facts: Sequence[str], value: object) -> str | None:
    if not isinstance(value, tuple | list):
        return None
    absent = absent_from(" ; ".join(one for one in value if isinstance(one, str)), "\n".join(facts))
    return f"a claim states {absent}, which the text does not" if absent else None


def _of_kept_fact(case: Case, question: kinds.KeepsFact, value: object) -> str | None:
    reported = lexical.answer(case, question)
    if not isinstance(reported, Answer) or reported.value == value:
        return None
    return (
        f"held to be kept, and {reported.reason}" if value is True else "held to be lost, and stands in the translation"
    )


def _of_outcomes(pairs: Sequence[tuple[str, str]], value: object) -> str | None:
    outcomes = value.get("outcomes") if isinstance(value, Mapping) else None
    if not isinstance(outcomes, list | tuple) or any(given.strip() for _, given in pairs):
        return None
    kept = any(isinstance(outcome, Mapping) and outcome.get("kept") is True for outcome in outcomes)
    return "an outcome is held to be kept, and nothing was translated" if kept else None


def _of_output(case: Case, question: Question, value: Mapping[str, object]) -> str | None:
    output = text_or_json(case.model_output) if case.model_output is not None else ""
    match question:
        case kinds.GradeAnswer():
            return _of_grade(case, output, value)
        case kinds.GradeQuality():
            return _of_quality(case, output, value)
        case kinds.VerifyClaims():
            return _of_checked_claims(case, output, value)
        case kinds.GradeAgent(metric=metric):
            return _of_agent(case, metric, value)
        case _:
            return None


def _of_grade(case: Case, output: str, value: Mapping[str, object]) -> str | None:
    accuracy, faithfulness = value.get("accuracy_score"), value.get("faithfulness_score")
    if not output.strip():
        return "credit for an empty answer" if accuracy not in (0, None) else None
    if case.expected_outcome is None:
        return None
    reference = text_or_json(case.expected_outcome)
    if accuracy == 0 and same(output, reference):
        return "no credit for the reference's own words"
    if accuracy == 2 and disagree(figures(reference), figures(output)):
        return "full credit, with none of the reference's figures"
    known = _known(case.transcript_text, reference, case.input, *_texts(sources(case)))
    absent = absent_from(output, known) if faithfulness == 2 and known is not None else None
    return f"held to be fully faithful, and {absent} stands in no source" if absent else None


def _of_quality(case: Case, output: str, value: Mapping[str, object]) -> str | None:
    scores = [value.get(key) for key in ("answer_quality", "factual_correctness", "completeness")]
    if not output.strip():
        return "credit for an empty answer" if any(scores) else None
    known = sources(case)
    correct = scores[1]
    if isinstance(known, Unavailable) or not isinstance(correct, int | float) or correct < _ALL_SUPPORTED:
        return None
    stated = _known(case.input, case.expected_outcome, case.transcript_text, *known)
    absent = absent_from(output, stated) if stated is not None else None
    return f"held to be all supported, and {absent} stands in no source" if absent else None


def _of_checked_claims(case: Case, output: str, value: Mapping[str, object]) -> str | None:
    listed = value.get("claims")
    truth = ground_truth(case)
    known = None if isinstance(truth, Unavailable) else _known(case.input, *truth)
    if not isinstance(listed, list | tuple) or known is None:
        return None
    stated = f"{output}\n{known}"
    for one in listed[:_CLAIMS]:
        claim = one.get("claim") if isinstance(one, Mapping) else None
        if not isinstance(claim, str):
            continue
        if absent := absent_from(claim, stated):
            return f"a claim states {absent}, which the output does not"
        if one.get("accurate") is True and (absent := absent_from(claim, known)):
            return f"held to be accurate, and {absent} stands nowhere in the ground truth"
    return None


def _of_agent(case: Case, metric: str, value: Mapping[str, object]) -> str | None:
    conversation = turns(case)
    named = value.get("turns")
    if not isinstance(conversation, Unavailable) and isinstance(named, list | tuple):
        strange = [turn for turn in named if isinstance(turn, int) and not 0 <= turn < len(conversation)]
        if strange:
            return f"turn {label(str(strange[0]), 20)} does not exist"
    score = value.get("score")
    if metric != "tool_routing" or not isinstance(score, int) or score < ACCEPTABLE_SCORE:
        return None
    scenario = stated_scenario(case)
    if scenario is None or isinstance(scenario, Unavailable):
        return None
    called = {call.name for call in called_tools(case, scenario) or ()}
    missing = [name for name in scenario.tools.include if name not in called]
    known = case.complete and case.tools_used is not None
    return f"all critical tools held to be called, and {label(missing[0])} was not" if missing and known else None


def _known(*stated: object) -> str | None:
    """All known text in one; None when there is none, or it is too long to look up."""
    texts = [text_or_json(one) for one in stated if one is not None]  # type: ignore[arg-type]  # JSON values of a case
    known = "\n".join(text for text in texts if text)
    return known if 0 < len(known) <= MAX_TEXT else None


def _texts(found: tuple[str, ...] | Unavailable) -> tuple[str, ...]:
    return () if isinstance(found, Unavailable) else found
