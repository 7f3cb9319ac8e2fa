"""Every alert has a runbook that says what it means, whom it hurts, how to find the cause and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sidejudge.dashboards.generated import RUNBOOKS, SECTIONS
from sidejudge.dashboards.rules.groups import alerts
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration

SLUGS = {alert.runbook for alert in alerts(Declaration())} | {each.runbook for each in conditions(Declaration())}


@pytest.mark.parametrize("slug", sorted(SLUGS))
def test_a_runbook_says_what_one_needs_to_know(slug: str) -> None:
    assert (RUNBOOKS / f"{slug}.md").exists(), "run 'make reference', then write the text below its head"
    text = (RUNBOOKS / f"{slug}.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert tuple(parts[1::2]) == SECTIONS
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        assert len(body.split()) >= 8, f"{heading} of {slug} says next to nothing"
    assert "```promql" in parts[0]


def test_there_is_no_runbook_of_nothing() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == SLUGS | {"README"}


@pytest.mark.parametrize("path", sorted(RUNBOOKS.glob("*.md")), ids=lambda path: path.stem)
def test_links_between_runbooks_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([\w-]+\.md)\)", path.read_text(encoding="utf-8")):
        assert (RUNBOOKS / link).exists(), link
