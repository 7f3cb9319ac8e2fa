"""Site: which Markdown files are pages of the documentation, at which address, and how they are listed.

A page's address follows from its path: ``docs/how-to/size.md`` is at ``/help/how-to/size``, a file elsewhere at
``/help/`` and its path. A section lists its pages in its ``README.md``, in the order of the links there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from posixpath import join, normpath

from .markdown import MarkdownPage, read

_HERE = Path(__file__).resolve()
_PLACES = (_HERE.parent / "repository", _HERE.parents[2])
"""The folder of the files: an installed package keeps files from outside the packages beside this file."""
SECTIONS = ("tutorials", "how-to", "reference", "explanation", "development")
_ELSEWHERE = (
    "dashboards/runbooks/*.md", "helm/README.md", "helm/*/README.md", "CHANGELOG.md", "SECURITY.md", "SUPPORT.md",
)  # fmt: skip
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page in a list of pages."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class SiteSection:
    """A kind of page, with its pages in order."""

    overview: ListedPage
    pages: Sequence[ListedPage]


@cache
def files() -> Mapping[str, Path]:
    """The Markdown files that are pages, by their path in the repository."""
    found: dict[str, Path] = {}
    for place in reversed(_PLACES):
        if not (place / "docs").is_dir() and not (place / "monitor").is_dir():
            continue
        for pattern in ("docs/*.md", "docs/*/*.md", *_ELSEWHERE):
            found |= {path.relative_to(place).as_posix(): path for path in sorted(place.glob(pattern))}
    return found


@cache
def addresses() -> Mapping[str, str]:
    """The path in the repository of each page, by its address below ``/help``."""
    return {address(path).removeprefix("/help").strip("/"): path for path in files()}


def address(path: str) -> str:
    """Where a file of the repository is served.

    >>> address("docs/README.md"), address("docs/how-to/README.md"), address("docs/reference/configuration.md")
    ('/help', '/help/how-to', '/help/reference/configuration')
    """
    page = path.removeprefix("docs/").removesuffix(".md")
    page = page.removesuffix("README").rstrip("/") if path.startswith("docs/") else page
    return f"/help/{page}".rstrip("/")


def runbook_of(name: str) -> str | None:
    """The path of a runbook, found by its own name or by the name of its Prometheus alert; None where neither is known.

    An empty name is the list of runbooks. An ending ``.md`` is accepted, because links to copied files have it.

    >>> runbook_of("SidejudgePassRateCritical") == runbook_of("pass-rate-critical")
    True
    """
    slug = re.sub(r"(?<!^)(?=[A-Z])", "-", name.strip("/").removesuffix(".md").removeprefix("Sidejudge")).lower()
    path = f"dashboards/runbooks/{slug or 'README'}.md"
    return path if path in files() else None


@cache
def document(path: str) -> MarkdownPage:
    """A page, read. Raises ``KeyError`` for a path that is none."""
    text = _COMMENT.sub("", files()[path].read_text(encoding="utf-8"))
    return read(text, lambda link: resolve(path, link))


def resolve(path: str, link: str) -> str | None:
    """The address that a link of the page ``path`` leads to; None where it leads to a file that is no page."""
    if re.match(r"[a-z]+:|/|#", link):
        return link
    target, _, anchor = link.partition("#")
    wanted = normpath(join(path.rpartition("/")[0], target))
    wanted = wanted if wanted in files() else f"{wanted}/README.md"
    return address(wanted) + (f"#{anchor}" if anchor else "") if wanted in files() else None


@cache
def sections() -> Sequence[SiteSection]:
    """The kinds of pages, each in the order of its overview."""
    return [_section(f"docs/{name}/README.md") for name in SECTIONS if f"docs/{name}/README.md" in files()]


def _section(overview: str) -> SiteSection:
    page = document(overview)
    pages: dict[str, ListedPage] = {}
    for text, link in page.links:
        if link.startswith("/help/") and "#" not in link:
            pages.setdefault(link, ListedPage(text, link))
    return SiteSection(ListedPage(page.title, address(overview)), list(pages.values()))
