"""Pills: a state in one word, in its colour. The word alone tells it, for those who see no colours."""

from __future__ import annotations

from collections.abc import Mapping

from scoring.status.status import Status

NAMES = {status: status.value.replace("_", " ") for status in Status}
_PASSED = {True: ("healthy", "passed"), False: ("critical", "failed"), None: ("insufficient_data", "incomplete")}


def pill(style: str, word: str) -> str:
    """A word in the colour of a status. Both are ours."""
    return f'<span class="pill {style}">{word}</span>'


def status_pill(status: Status) -> str:
    """The pill of a status."""
    return pill(status.value, NAMES[status])


def verdict_pill(verdict: Mapping[str, object]) -> str:
    """Whether a verdict passed, failed, or did neither."""
    passed = verdict.get("passed")
    return pill(*_PASSED[passed if isinstance(passed, bool) else None])
