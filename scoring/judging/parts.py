"""Parts: the parts of a case that a judge can be shown, each as one text.

A part of several items has one JSON object on each line, so that no item can pass for two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.case.grounds import called_tools, criteria, ground_truth, sources, stated_scenario, text_or_json
from sidejudge.scoring.lexical.text import normalise
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.trace.span import Json

METADATA = "metadata."


def part(case: Case, name: str) -> str | None:
    """A part by its name; None when the case lacks it, or it is unknown."""
    if is_metadata(name):
        return _stated(case.metadata.get(name.removeprefix(METADATA)))
    return PARTS[name](case)


def is_metadata(name: str) -> bool:
    """Whether a part is one value of the metadata (``metadata.plan``)."""
    return name.startswith(METADATA)


def lines(items: Iterable[object]) -> str:
    """Each item as JSON on a line of its own."""
    return "\n".join(_line(item) for item in items)


def _line(item: object) -> str:
    try:
        return json.dumps(item, ensure_ascii=False)
    except (RecursionError, ValueError):
        return '"(nested too deeply to be shown)"'


def _stated(value: Json) -> str | None:
    return None if value in (None, "", [], {}) else text_or_json(value)


def _transcript(case: Case) -> str | None:
    if case.transcript is None or isinstance(case.transcript, str):
        return case.transcript or None
    return _turns(case.transcript)


def _turns(stated: Iterable[Utterance]) -> str | None:
    return lines(_known({"at": one.at, "speaker": one.speaker, "text": one.text}) for one in stated) or None


def _conversation(case: Case) -> str | None:
    found = turns(case)
    if isinstance(found, Unavailable):
        return None
    return lines(
        _known({"turn": number, "at": one.at, "speaker": one.speaker, "text": one.text})
        for number, one in enumerate(found)
    )


def _tools(case: Case) -> str | None:
    scenario = stated_scenario(case)
    calls = called_tools(case, None if isinstance(scenario, Unavailable) else scenario)
    if calls is None:
        return None
    return (
        lines(
            _known({"tool": call.name, "arguments": call.arguments, "result": call.result, "error": call.error})
            for call in calls
        )
        or "(none was called)"
    )


def _known(item: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in item.items() if value is not None}


def _listed(found: tuple[str, ...] | Unavailable) -> str | None:
    return None if isinstance(found, Unavailable) else lines({"text": text} for text in found) or None


def _criteria(case: Case) -> str | None:
    found = criteria(case)
    return None if isinstance(found, Unavailable) else found.text


def _task(case: Case) -> str | None:
    """The task: the input; without one, the application's system prompt."""
    return _stated(case.input) or case.system_prompt or None


def _context(case: Case) -> str | None:
    """Seed 002's provided context: the sources; without any, the turns before the answer."""
    found = _listed(sources(case))
    if found is not None or not isinstance(case.transcript, tuple):
        return found or _transcript(case)
    answer = normalise(text_or_json(case.model_output))
    return _turns(one for one in case.transcript if normalise(one.text) != answer)


PARTS: Mapping[str, Callable[[Case], str | None]] = {
    "system_prompt": lambda case: case.system_prompt or None,
    "task": _task,
    "input": lambda case: _stated(case.input),
    "transcript": _transcript,
    "conversation": _conversation,
    "tools": _tools,
    "context": lambda case: _listed(case.context or ()),
    "provided_context": _context,
    "sources": lambda case: _listed(sources(case)),
    "ground_truth": lambda case: _listed(ground_truth(case)),
    "criteria": _criteria,
    "expected_outcome": lambda case: _stated(case.expected_outcome),
    "model_output": lambda case: _stated(case.model_output),
    "config": lambda case: _stated(dict(case.config)),
}
"""The parts in the order in which they are shown."""
