"""The trend as a drawing: gaps stay gaps, and the title says it in words."""

from __future__ import annotations

import re
from dataclasses import replace

from sidejudge.dashboards.pages import trend as drawings
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.status.status import Thresholds
from sidejudge.scoring.status.trend import Trend
from tests.dashboards.pages.rendered import macro


def trend_drawing(found: Trend | None, thresholds: Thresholds) -> str:
    return macro("drawings.html", "trend", drawings.trend_drawing(found, thresholds))


def trend(*shares: tuple[int, int] | None, enough: float = 5) -> Trend:
    """Of (passed, failed) in each stretch; None for no verdict."""
    estimates = tuple(
        estimate([(True, 1.0)] * share[0] + [(False, 1.0)] * share[1]) if share else None for share in shares
    )
    return Trend(until_ns=10**18, step_ns=3600 * 10**9, estimates=estimates, enough=enough)


def test_without_a_verdict_there_is_a_dash_and_no_drawing():
    assert trend_drawing(None, Thresholds()) == "–"
    assert trend_drawing(trend(None, None), Thresholds()) == "–"


def test_what_rests_on_too_little_is_a_gap_with_a_mark():
    drawn = trend_drawing(trend((9, 1), (8, 2), (1, 0), None, (5, 5), (6, 4)), Thresholds())
    assert drawn.count("<polyline") == 2
    assert drawn.count('class="thin"') == 1
    assert "2 of 6 without enough verdicts" in drawn
    assert "from 90.0% to 60.0%, lowest 50.0%, highest 90.0%" in drawn


def test_one_stretch_between_gaps_shows_its_bounds_as_a_bar():
    drawn = trend_drawing(trend(None, (9, 1), None), Thresholds())
    assert drawn.count('class="bar"') == 1
    assert "<polyline" not in drawn


def test_only_too_little_everywhere_is_said_and_no_line_is_drawn():
    drawn = trend_drawing(trend((1, 0), (0, 1)), Thresholds())
    assert "too few verdicts in each" in drawn
    assert "<polyline" not in drawn
    assert "<circle" not in drawn


def test_everything_stays_on_the_drawing_and_a_better_ratio_stands_higher():
    drawn = trend_drawing(trend((100, 0), (0, 100), (50, 50)), Thresholds())
    (line,) = re.findall(r'<polyline class="line" points="([^"]*)"', drawn)
    ys = [float(point.partition(",")[2]) for point in line.split()]
    assert ys[0] < ys[2] < ys[1]
    for tag in re.findall(r"<(?:rect|line|circle|polygon|polyline)[^>]*>", drawn):
        for y in re.findall(r'(?:c?y[12]?)="([^"]*)"', tag):
            assert 0 <= float(y) <= 44, tag


def test_both_thresholds_are_lines_at_their_heights():
    drawn = trend_drawing(trend((9, 1)), Thresholds(warning=0.9, critical=0.8))
    marks = [float(y) for y in re.findall(r'class="mark"[^>]*y1="([^"]*)"', drawn)]
    assert len(marks) == 2
    assert marks[0] < marks[1]


def test_another_version_of_the_rubric_is_a_line_across_and_stands_in_the_words():
    drawn = trend_drawing(replace(trend(*[(9, 1)] * 6), changes=(4,)), Thresholds())
    assert drawn.count('class="changed"') == 1
    assert "the rubric changed within the last 2 h" in drawn
    assert "changed" not in trend_drawing(trend(*[(9, 1)] * 6), Thresholds())
