"""Help page: a page of the documentation, with the list of all pages beside it."""

from __future__ import annotations

from dashboards.help.site import addresses, document, runbook_of, search, sections

from .rendering import render

_ALERT = "alert/"


def help_page(address: str) -> str | None:
    """The page at an address below ``/help``, as HTML; None where there is none. ``alert/NAME`` is its runbook."""
    alert = address.strip("/").removeprefix(_ALERT)
    path = runbook_of(alert) if address.startswith(_ALERT) else addresses().get(alert)
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
