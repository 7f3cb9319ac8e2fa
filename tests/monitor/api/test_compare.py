"""The page of a comparison: which verdicts stand on which side, and what the page makes of them."""

from __future__ import annotations

import pytest

from sidejudge.dashboards.pages.compare_page import compare_list_page, compare_page, in_words
from sidejudge.integrations.store.bounded_read import ComparedVerdict
from sidejudge.monitor.alerting.comparisons import ComparedVerdicts
from sidejudge.monitor.api.compare import ComparisonChoice, Period, comparable, compared, period_of
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import Difference

NOW = 1_790_000_000 * 10**9
HOUR = 3600 * 10**9
PERIOD = Period(since_ns=NOW - 24 * HOUR, until_ns=NOW, split_ns=NOW - 12 * HOUR)


def samples(version: str, passed: int, failed: int, *, hours_ago: float, weight: float = 1.0, **more: object) -> list:
    """As the store gives them: newest first."""
    return [
        ComparedVerdict(**{
            "closed_ns": int(NOW - hours_ago * HOUR) - number, "passed": number >= failed, "weight": weight,
            "service": "shop", "environment": "prod", "rubric": "qa", "name": "answer", "release": version or None,
            "metrics": {"tools": (1.0, False), "accuracy": (0.2, True) if number < failed else (0.9, False)}, **more,
        })
        for number in range(passed + failed)
    ]  # fmt: skip


DROP = [*samples("2.0", 70, 30, hours_ago=1), *samples("1.0", 190, 10, hours_ago=20)]


def page(found: list[ComparedVerdict], **chosen: str):
    choice = ComparisonChoice(**{"service": "shop", "environment": "prod", "rubric": "qa", "last": "1d", **chosen})
    return compared(choice, ComparedVerdicts(found, capped=False), PERIOD, NOW)


def test_the_latest_version_is_compared_with_the_one_before_it_without_being_asked() -> None:
    found = page(DROP)
    assert (found.by, found.before.name, found.after.name) == ("release", "1.0", "2.0")
    assert (found.before.estimate.pass_ratio, found.after.estimate.pass_ratio) == (0.95, 0.7)
    assert found.difference.difference == pytest.approx(-0.25)
    assert found.difference.upper < 0
    assert in_words(found).startswith("“2.0” passes 25.0 points less often than “1.0”: between 8.9")
    assert found.options == {"1.0": 200, "2.0": 100}


def test_any_two_versions_may_be_chosen_and_an_unknown_one_falls_back() -> None:
    three = [*DROP, *samples("0.9", 50, 0, hours_ago=22)]
    found = page(three, before="0.9", after="1.0")
    assert (found.before.name, found.after.name) == ("0.9", "1.0")
    found = page(three, before="2.0", after="1.0")
    assert (found.before.name, found.after.name) == ("2.0", "1.0"), "also backwards"
    found = page(three, before="<b>", after="1.0")
    assert (found.before.name, found.after.name) == ("0.9", "1.0")
    found = page(three, before="2.0")
    assert (found.before.name, found.after.name) == ("2.0", "1.0"), "never with itself"


def test_metrics_that_changed_stand_first_with_the_share_that_fails_and_the_mean() -> None:
    accuracy, tools = page(DROP).metrics
    assert (accuracy.metric, accuracy.failing) == ("accuracy", (0.05, pytest.approx(0.3)))
    assert accuracy.means == (pytest.approx(0.865), pytest.approx(0.69))
    assert accuracy.shown
    assert (tools.failing, tools.difference) == ((0.0, 0.0), None)


def test_a_small_difference_is_called_none_with_what_it_may_be() -> None:
    found = page([*samples("2.0", 36, 4, hours_ago=1), *samples("1.0", 95, 5, hours_ago=20)])
    assert in_words(found).startswith("No difference is shown. “2.0” may pass up to 2")


def test_verdicts_weigh_what_they_stand_for() -> None:
    mixed = [*samples("2.0", 40, 0, hours_ago=1, weight=20.0), *samples("2.0", 0, 40, hours_ago=2)]
    found = page([*mixed, *samples("1.0", 95, 5, hours_ago=20)])
    assert found.after.estimate.pass_ratio == pytest.approx(800 / 840)
    assert found.after.estimate.effective_n < 45


def test_two_times_are_compared_where_no_version_is_known() -> None:
    found = page([*samples("", 20, 20, hours_ago=1), *samples("", 40, 0, hours_ago=20)])
    assert found.by == "time"
    assert (found.before.name, found.after.name) == ("before 2026-09-21T04:13:00", "from 2026-09-21T04:13:00")
    assert found.difference.difference == pytest.approx(-0.5)
    assert found.unversioned == 0


def test_two_halves_of_what_there_is_are_compared_and_times_that_are_asked_for_as_they_are() -> None:
    minutes = [*samples("", 20, 20, hours_ago=0.1), *samples("", 40, 0, hours_ago=0.3)]
    assert page(minutes, last="").before.verdicts == 40
    asked = page(minutes, by="time")
    assert (asked.before.name, asked.before.verdicts) == ("the 1d before", 0)


def test_a_moment_alone_parts_the_verdicts() -> None:
    choice = ComparisonChoice(service="shop", environment="prod", rubric="qa", last="1d", at="2026-09-21T13:00")
    period = period_of(choice, NOW)
    assert period.split_ns - period.since_ns == 24 * HOUR
    found = compared(choice, ComparedVerdicts(DROP, capped=False), period, NOW)
    assert (found.by, found.before.name) == ("time", "the 1d before 2026-09-21T13:00")
    assert (found.before.verdicts, found.after.verdicts) == (200, 100)


def test_without_a_service_the_two_latest_versions_of_each_are_offered() -> None:
    found = comparable([
        *DROP, *samples("0.9", 5, 0, hours_ago=22), *samples("", 9, 0, hours_ago=2, service="<b>", model="m1"),
        *samples("", 9, 0, hours_ago=1, service="<b>", model="m2"), *samples("", 3, 0, hours_ago=1, service="new"),
    ])  # fmt: skip
    offered = [(each.service, each.by, each.before, each.after, each.verdicts) for each in found]
    assert offered == [
        ("shop", "release", "1.0", "2.0", 305), ("<b>", "model", "m1", "m2", 18), ("new", "time", "", "", 3),
    ]  # fmt: skip
    text = compare_list_page(found, capped=False)
    at = "/compare?service=shop&amp;environment=prod&amp;rubric=qa&amp;by=release&amp;before=1.0&amp;after=2.0"
    assert f'href="{at}"' in text
    assert 'href="/compare?service=new&amp;environment=prod&amp;rubric=qa"' in text
    assert "<b>" not in text.partition("<tbody>")[2].partition("</tbody>")[0]


@pytest.mark.parametrize(
    ("found", "chosen", "stated"),
    [
        ([], {}, "There is no verdict in these times."),
        ([], {"by": "prompt"}, "needs two values of “version of the prompt”, and no trace states one"),
        (samples("1.0", 5, 0, hours_ago=1), {"by": "release"}, "and only one is known"),
        (samples("1.0", 5, 0, hours_ago=1), {"by": "time"}, "there is nothing on the side before"),
    ],
)
def test_what_cannot_be_compared_is_named(found: list, chosen: dict, stated: str) -> None:
    made = page(found, **chosen)
    assert not isinstance(made.difference, Difference)
    assert stated in in_words(made)
    assert "critical" not in compare_page(made).partition("</style>")[2]


def test_a_session_counts_as_one_and_only_like_is_compared_with_like() -> None:
    one_session = samples("2.0", 5, 35, hours_ago=1, session="s1")
    found = page([*one_session, *samples("1.0", 40, 0, hours_ago=20)]).difference
    assert isinstance(found, Unavailable)
    easy, hard = {"name": "easy"}, {"name": "hard"}
    mixed = page([
        *samples("2.0", 90, 0, hours_ago=1, **easy), *samples("2.0", 10, 10, hours_ago=2, **hard),
        *samples("1.0", 30, 0, hours_ago=20, **easy), *samples("1.0", 40, 40, hours_ago=21, **hard),
        *samples("", 3, 0, hours_ago=30),
    ])  # fmt: skip
    assert mixed.after.estimate.pass_ratio - mixed.before.estimate.pass_ratio > 0.2
    assert mixed.difference.difference == pytest.approx(0), "neither kind of run passes more often"
    text = compare_page(mixed)
    assert "2 groups" in text
    assert "3 verdicts without a version" in text


def test_names_from_traces_are_escaped_and_failed_verdicts_are_linked() -> None:
    text = compare_page(page([*samples("<b>2</b>", 7, 3, hours_ago=1), *samples("1.0", 9, 1, hours_ago=20)]))
    assert "<b>2</b>" not in text
    assert "release=%3Cb%3E2%3C%2Fb%3E" in text
    assert "/verdicts?service=shop" in text
