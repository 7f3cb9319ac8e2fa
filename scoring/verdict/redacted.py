"""A verdict with redacted quotations in reasons, details and votes, for the store and every destination."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_
from typing import Final, TypeAlias, cast

from msgspec import structs

from sidejudge.scoring.result.reason import Kind, Reason, ReasonPart
from sidejudge.scoring.result.result import Judgement, Result, Scored, lowest_steps

from .score import Score
from .verdict import Verdict

Redact: TypeAlias = Callable[[str], str]
_WORDS: Final = Kind.WORDS
_OURS: Final = (_WORDS, Kind.NUMBER)


def redacted_verdict(verdict: Verdict, redact: Redact) -> Verdict:
    """The redacted verdict; the same object where nothing is replaced. ``redact`` redacts a text."""
    scores = tuple([_score(each, redact) for each in verdict.scores])
    reason, extra = _reason(verdict.reason, redact), redacted(verdict.extra, redact)
    same = all(map(is_, scores, verdict.scores))
    if same and reason is verdict.reason and extra is verdict.extra:
        return verdict
    return replace(verdict, scores=scores, reason=reason, extra=cast("Mapping[str, object]", extra))


def redacted(value: object, redact: Redact) -> object:
    """A JSON value with every text and key redacted; the same object where nothing is replaced."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        changed = {redacted(key, redact): redacted(each, redact) for key, each in value.items()}
        return value if changed == value else changed
    if isinstance(value, list | tuple):
        held = [redacted(each, redact) for each in value]
        return value if held == [*value] else held
    return value


def _score(score: Score, redact: Redact) -> Score:
    result = score.result
    reason = result.reason
    details = result.details if type(result) is Scored else None
    if not (details or score.requested or score.judgements) and (
        not reason or (type(reason) is Reason and len(reason.parts) == 1 and reason.parts[0][0] is _WORDS)
    ):
        return score  # most are; this runs for each score of each trace
    found: Result = result
    if (changed := _reason(reason, redact)) is not reason:
        found = structs.replace(found, reason=changed)
    if isinstance(found, Scored) and details and not lowest_steps(details):  # ids of spans
        shown = redacted(details, redact)
        if shown is not details:
            found = structs.replace(found, details=shown)
    if isinstance(found, Scored) and (judged := _judgements(found.judgements, redact)) is not found.judgements:
        found = structs.replace(found, judgements=judged)
    others = _judgements(score.judgements, redact)
    if found is result and others is score.judgements:
        return score
    return Score(score.metric, score.weight, found, score.rating, others)


def _judgements(judgements: tuple[Judgement, ...], redact: Redact) -> tuple[Judgement, ...]:
    """Redact the judgements: a panel's votes are its judges' answers, which may quote."""
    found = tuple(
        [
            replace(each, votes=tuple([(model, redact(vote)) for model, vote in each.votes])) if each.votes else each
            for each in judgements
        ]
    )
    return judgements if found == judgements else found


def _reason(reason: str, redact: Redact) -> str:
    if not isinstance(reason, Reason):
        replaced = redact(reason)
        return reason if replaced == reason else replaced
    found = [(kind, text if kind in _OURS else redact(text)) for kind, text in reason.parts]
    return reason if found == [*reason.parts] else Reason.of(map(ReasonPart._make, found))
