"""Help page: a page of the documentation, with the list of all pages beside it."""

from __future__ import annotations

from sidejudge.dashboards.help.search import search
from sidejudge.dashboards.help.site import addresses, document, runbook_of, sections

from .rendering import render

_RUNBOOKS = ("alert", "runbooks")
"""Below either lie the runbooks; the second is what earlier versions advised to link to."""


def help_page(address: str) -> str | None:
    """The page at an address below ``/help``, as HTML; None where there is none. ``alert/NAME`` is its runbook."""
    folder, _, name = address.strip("/").partition("/")
    path = runbook_of(name) if folder in _RUNBOOKS else addresses().get(address.strip("/"))
    if path is None:
        return None
    page = document(path)
    here = f"/help/{address.strip('/')}".rstrip("/")
    return render(
        "help.html", title=f"{page.title} · sidejudge", here="/help", page=page, sections=sections(), at=here,
        searched="", found=(),
    )  # fmt: skip


def search_page(words: str) -> str:
    """The pages in which these words occur, as HTML."""
    return render(
        "help.html", title="Search · sidejudge", here="/help", page=None, sections=sections(), at="", searched=words,
        found=search(words),
    )  # fmt: skip
