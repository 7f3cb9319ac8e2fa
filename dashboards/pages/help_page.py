"""Help page: a page of the documentation, with the list of all pages beside it."""

from __future__ import annotations

from dashboards.help.site import addresses, document, search, sections

from .rendering import render


def help_page(address: str) -> str | None:
    """The page at an address below ``/help``, as HTML; None where there is none."""
    path = addresses().get(address.strip("/"))
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
