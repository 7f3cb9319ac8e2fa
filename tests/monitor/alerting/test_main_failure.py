"""A notice begins with what broke: what most of the latest failures have in common, without contents unless asked."""

from __future__ import annotations

from typing import Any

import pytest

from sidejudge.integrations.store.bounded_read import ComparedFilter, ComparedVerdict
from sidejudge.monitor.alerting.failures import illustrated
from sidejudge.scoring.alerts.event import event_of_json
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.notices.wording import report
from tests.alert_events import SINCE_NS, event

LABELS = (("service", "shop"), ("environment", "prod"), ("rubric", "run_health"))


class Stored:
    """Failing verdicts, the newest first; ``reasons`` of their only failing metric."""

    def __init__(self, *reasons: str, at_ns: int = SINCE_NS) -> None:
        self._found = [
            {
                "trace_id": f"{number:032x}", "service": "shop", "environment": "prod", "rubric": "run_health",
                "reason": reason, "composite": 0.1, "composite_norm": 0.1, "closed_ns": at_ns, "blockers": [],
                "scores": [{"metric": "tool_errors", "rating": "fail", "status": "scored", "value": 0.0,
                            "reason": reason, "weight": 1.0, "method": "rules"}],
            }
            for number, reason in enumerate(reasons)
        ]  # fmt: skip

    @property
    def verdicts(self) -> Any:
        return lambda **_asked: list(self._found)

    def compared(self, _wanted: ComparedFilter) -> list[ComparedVerdict]:
        return []


def found(*reasons: str, **more: Any) -> Any:
    return illustrated(Stored(*reasons, **more), event(labels=LABELS, failure=None, explained=None, examples=()), 0)


def words(about: Any, **wording: Any) -> str:
    notice = Notice(id="n", kind=NoticeKind.ALERT, at_ns=SINCE_NS, events=(about,))
    return report(notice, Wording(**wording)).text


def test_the_largest_group_of_like_failures_is_what_broke() -> None:
    about = found(*["3 of 7 calls failed"] * 5, *["4 of 9 calls failed"] * 2, *['no answer to "card 4111"'] * 3)
    assert (about.failure.count, about.failure.of) == (7, 10)
    assert words(about).splitlines()[2].startswith("What broke: tool_errors")
    assert "(7 of the latest 10 failing traces)" in words(about)


@pytest.mark.parametrize("wording", [{}, {"quoted": True}, {"reasons": False}])
def test_contents_are_told_only_where_that_is_configured(wording: dict[str, bool]) -> None:
    text = words(found(*["the agent wrote card 4111 1111 aloud"] * 5), **wording)
    assert ("card 4111" in text) == ("quoted" in wording)
    assert ("What broke" in text) == ("reasons" not in wording)


def test_nothing_broke_in_common_where_failures_are_few_or_none() -> None:
    assert found().failure is None
    assert found("a", "b").failure is None
    assert "What broke" not in words(found("a", "b"))


def test_failures_before_it_began_count_only_where_there_are_no_younger_ones() -> None:
    assert found(*["old"] * 5, at_ns=0).failure.of == 5


def test_an_event_that_an_older_version_stored_has_none() -> None:
    stored = {key: value for key, value in event().to_json().items() if key != "failure"}
    assert event_of_json(stored).failure is None
    assert event_of_json(event().to_json()) == event()
