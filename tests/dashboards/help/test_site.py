"""The documentation as a site: every link leads somewhere, every page is listed, and nothing in it is HTML."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from posixpath import join, normpath

import pytest

from sidejudge.dashboards.help.markdown import parser, read
from sidejudge.dashboards.help.search import search
from sidejudge.dashboards.help.site import address, addresses, document, files, resolve, runbook_of, sections
from sidejudge.dashboards.pages.plain_pages import help_page, search_page
from sidejudge.monitor.reference import pages as generated
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration

ROOT = Path(__file__).parents[3]
OUTSIDE = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]


@cache
def links(path: str) -> list[str]:
    """The links of a file as they are written."""
    tokens = parser().parse((ROOT / path).read_text(encoding="utf-8"))
    inner = [child for token in tokens for child in token.children or ()]
    found = [each.attrGet("href") or each.attrGet("src") for each in inner if each.type in ("link_open", "image")]
    return [str(each) for each in found if not re.match(r"(https?|mailto):", str(each))]


@cache
def anchors(path: str) -> set[str]:
    return {each.anchor for each in read((ROOT / path).read_text(encoding="utf-8"), lambda link: link).headings}


@pytest.mark.parametrize("path", [*files(), *OUTSIDE])
def test_every_link_leads_to_a_file_and_a_heading_that_exist(path: str) -> None:
    for link in links(path):
        target, _, anchor = link.partition("#")
        wanted = normpath(join(path.rpartition("/")[0], target)) if target else path
        assert (ROOT / wanted).exists(), link
        if anchor and wanted.endswith(".md"):
            assert anchor in anchors(wanted), link


@pytest.mark.parametrize("path", [path for path in files() if path.startswith("docs/")])
def test_a_page_of_the_documentation_links_only_to_pages(path: str) -> None:
    assert [link for link in links(path) if resolve(path, link) is None] == []


def test_every_page_of_the_documentation_is_listed_once() -> None:
    listed = [entry.address for section in sections() for entry in section.pages]
    assert len(listed) == len(set(listed))
    overviews = {"/help", *(section.overview.address for section in sections())}
    assert {address(path) for path in files() if path.startswith("docs/")} - overviews <= set(listed)


@pytest.mark.parametrize("path", list(files()))
def test_a_page_has_one_title_and_no_html(path: str) -> None:
    page = document(path)
    assert [each.level for each in page.headings].count(1) == 1, path
    assert page.headings[0].level == 1
    assert help_page(address(path).removeprefix("/help")) is not None


def test_generated_pages_are_part_of_it() -> None:
    assert {path.relative_to(ROOT).as_posix() for path in generated() if path.suffix == ".md"} <= files().keys()


def test_what_looks_like_html_is_text_and_a_link_elsewhere_is_marked() -> None:
    page = read(
        '# T\n\n<script>x</script> [out](https://a.example) [gone](x.py)\n\n```sh title="a.sh"\n<b>\n```\n',
        lambda link: link if ":" in link else None,
    )
    assert "<script>" not in page.html
    assert "&lt;b&gt;" in page.html
    assert '<a href="https://a.example" rel="noreferrer" class="out">out</a> gone' in page.html
    assert '<div class="file">a.sh</div>' in page.html


def test_a_heading_that_comes_twice_has_two_anchors() -> None:
    assert [each.anchor for each in read("# A b\n\n# A b\n", lambda link: link).headings] == ["a-b", "a-b-1"]


def test_a_search_finds_pages_by_all_words_titles_first() -> None:
    found = [entry.address for entry in search("missing trace")]
    assert found[0] == "/help/how-to/missing-trace"
    assert search("zxqvy") == []
    assert "/help/how-to/missing-trace" in search_page("missing trace")


def test_the_runbook_of_every_alert_is_found_by_the_name_of_the_alert() -> None:
    runbooks = [path for path in files() if path.startswith("dashboards/runbooks/") and not path.endswith("README.md")]
    names = {condition.alert_name for condition in conditions(Declaration())}
    found = {runbook_of(name) for name in names}
    assert found <= set(runbooks)
    assert {runbook_of("Sidejudge" + Path(path).stem.title().replace("-", "")) for path in runbooks} == set(runbooks)
    assert help_page("alert/SidejudgePassRateCritical") is not None
    assert help_page("alert/SidejudgeNoSuchAlert") is None


def test_no_address_outside_the_site_is_a_page() -> None:
    assert help_page("../../etc/passwd") is None
    assert help_page("how-to/size.md") is None
    assert len(addresses()) == len(files())
