"""Tools by which an agent gives its answer: ``final_answer``, ``submit``, ``finish``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .span import Json, ToolCall

ANSWER_TOOLS: Final = frozenset({
    "finalanswer", "finalresult", "finaloutput", "finalresponse", "submit", "submitanswer", "submitfinalanswer",
    "finish", "done", "taskdone", "completetask", "attemptcompletion", "giveanswer", "provideanswer",
    "providefinalanswer", "returnanswer",
})  # fmt: skip
"""Tools by which an agent gives its answer, as ``plain`` names them: who calls one of these has tried no tool."""
_PLAIN_NAME: Final = re.compile(r"\W+")
NAMESPACE: Final = re.compile(r"\W+|__")
"""What separates the name of a plugin or server from the name of its tool."""


def plain(name: str) -> str:
    """A tool's name without what clients change of it: case, punctuation.

    >>> plain("functions.get-Weather")
    'functionsgetweather'
    """
    return _PLAIN_NAME.sub("", name).replace("_", "").lower()


def gives_answer(name: str) -> bool:
    """Whether a tool of this name is one by which an agent answers."""
    return plain(NAMESPACE.split(name)[-1]) in ANSWER_TOOLS


def answer_given(calls: Iterable[ToolCall]) -> Json:
    """What the last call of such a tool gave as the answer: its only argument, else its result, else all of them."""
    for call in reversed(list(calls)):
        if gives_answer(call.name) and call.error is None:
            given = call.arguments
            return next(iter(given.values())) if isinstance(given, dict) and len(given) == 1 else call.result or given
    return None
