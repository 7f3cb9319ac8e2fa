"""Call record: one call to a judge as JSON, for ``explain --judge``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.judging.layout import form_for
from sidejudge.scoring.judging.request import JudgeRequest
from sidejudge.scoring.lexical.amount import ranges
from sidejudge.scoring.questions.kinds import FindErrors, ReachedGoal
from sidejudge.scoring.questions.question import NoAnswer, Question
from sidejudge.scoring.verdict.redacted import redacted

from .answer_cache import CachedAnswer

LONGEST: Final = 200_000
"""Characters of one text that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request to one model. ``text`` is its raw answer, None where there is none; ``faults`` are the parser's.

    ``complaint`` is the end of the prompt where questions were asked again. ``failure`` is why no answer came.
    """

    model: str
    text: str | None = None
    duration_s: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    finish_reason: str | None = None
    faults: tuple[str, ...] = ()
    complaint: str = ""
    failure: str = ""


def record_of(
    request: JudgeRequest,
    exchanges: Sequence[Exchange],
    answers: Mapping[Question, CachedAnswer | NoAnswer],
    redaction: Redaction | None,
) -> dict[str, object]:
    """The call as JSON. ``redaction`` is applied to answers as it was to the prompt."""

    def shown(text: str) -> str:
        text = text if redaction is None else redaction.apply(text)[0]
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"

    ids = request.ids or ("answer",)
    exchanges = [replace(each, text=shown(each.text) if each.text is not None else None) for each in exchanges]
    return {
        "prompt_version": request.prompt_version,
        "messages": [{**message, "content": shown(message["content"])} for message in request.messages],
        "exchanges": [{name: getattr(each, name) for name in Exchange.__dataclass_fields__} for each in exchanges],
        "questions": [
            {
                "id": name,
                "metric": form_for(question).metric,
                **_answer(answers.get(question), shown),
                **_extent(question),
            }
            for name, question in zip(ids, request.questions, strict=True)
        ],
    }


def _extent(question: Question) -> dict[str, object]:
    """Which steps of a long run were shown in full, and which were not."""
    if not isinstance(question, FindErrors | ReachedGoal):
        return {}
    left = sorted(set(range(1, question.of + 1)) - set(question.shown))
    return {"steps_shown": ranges(question.shown), "steps_not_shown": ranges(left)}


def _answer(given: CachedAnswer | NoAnswer | None, shown: Callable[[str], str]) -> dict[str, object]:
    if isinstance(given, CachedAnswer):
        return {
            "value": redacted(given.value, shown), "reason": shown(given.reason), "flags": list(given.flags),
            "votes": {model: shown(vote) for model, vote in given.votes}, "dissent": given.dissent,
        }  # fmt: skip
    return {"value": None, "fault": given.reason if given is not None else "the call brought no answer"}
