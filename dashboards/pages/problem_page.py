"""Problem page: why there is nothing to show, and what to do about it."""

from __future__ import annotations

from .rendering import render


def problem_page(cause: str, remedy: str) -> str:
    """The page as HTML: one line of cause, one of remedy."""
    return render("problem.html", title="Nothing to show · sidejudge", cause=cause, remedy=remedy)
