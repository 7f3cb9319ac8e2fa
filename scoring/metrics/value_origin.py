"""Where the value of an argument comes from: the user's message, or an earlier call's result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.result.reason import Reason, own, part
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, ToolCall
from sidejudge.scoring.trace.tool_answers import canonical

_LONGEST = 200_000
"""Characters of the input and of each result that are searched."""


def unfounded_values(
    case: Case, calls: Sequence[ToolCall], wanted: Mapping[str, Mapping[str, Sequence[str]]]
) -> Iterator[Reason]:
    """Arguments whose value stands in none of the places where it has to, in words without the value.

    Args:
        case: The case, for its input.
        calls: Its calls, in order of time.
        wanted: Places by tool and argument: ``input``, ``results`` (of earlier calls).
    """
    if not wanted:
        return
    requested = searchable(case.input) + searchable(case.transcript_text)
    before: list[str] = []
    for call in calls:
        arguments = decoded(call.arguments)
        given = arguments if isinstance(arguments, dict) else {}
        for name, places in wanted.get(call.name, {}).items():
            texts = [requested] if "input" in places else []
            texts += before if "results" in places else []
            if name in given and not stands_in(given[name], texts):
                yield Reason(
                    "{tool}.{argument}: its value stands in no {places}",
                    tool=part(label(call.name)),
                    argument=part(label(name)),
                    places=own(" and no ".join(places)),
                )
        if call.result is not None:
            before.append(searchable(call.result))


def searchable(value: Json) -> str:
    """A value as the text in which others are looked for."""
    text = value if isinstance(value, str) else "" if value is None else canonical(value)
    return text[:_LONGEST].casefold()


def stands_in(value: Json, texts: Sequence[str]) -> bool:
    """Whether a value, or each of a list's, stands in one of the texts; true for what is too short to be looked for."""
    if isinstance(value, list):
        return all(stands_in(one, texts) for one in value)
    if isinstance(value, bool) or value is None or isinstance(value, dict):
        return True
    wanted = str(value).casefold()
    return len(wanted) < 3 or any(wanted in text for text in texts)
