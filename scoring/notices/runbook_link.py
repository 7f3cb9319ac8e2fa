"""Runbook link: the address of an alert's runbook, by the one setting that says where runbooks lie.

``alerts.links.runbooks`` is that setting. Notices, rules for Prometheus and Grafana's boards all go by this file.
"""

from __future__ import annotations

import re

SLUG = "{runbook}"
"""Where the name of a runbook goes, in an address whose end it is not."""


def runbook_link(runbooks: str, slug: str) -> str:
    """The address of a runbook; ``slug`` is its name, or what somebody else puts its name in the place of.

    >>> runbook_link("https://monitor.example/help/alert", "judge-budget")
    'https://monitor.example/help/alert/judge-budget'
    >>> runbook_link("https://git.example/runbooks/{runbook}.md", "judge-budget")
    'https://git.example/runbooks/judge-budget.md'
    """
    return runbooks.replace(SLUG, slug) if SLUG in runbooks else f"{runbooks.rstrip('/')}/{slug}"


def check_runbooks(runbooks: str) -> str:
    """The setting as it stands.

    Raises:
        ValueError: No runbook's name could follow it.
    """
    if unknown := re.findall(r"[{}]", runbooks.replace(SLUG, "")):
        raise ValueError(f"holds {unknown[0]!r}: only {SLUG} is replaced in it, by the name of a runbook")
    if SLUG not in runbooks and re.search(r"[?#]", runbooks):
        raise ValueError(f"has a query or a fragment: write {SLUG} where the name of a runbook goes")
    return runbooks
