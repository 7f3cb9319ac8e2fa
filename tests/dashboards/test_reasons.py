"""Why a verdict failed, as pages show it: metrics with reasons, and the workflow's diff."""

from __future__ import annotations

from sidejudge.dashboards.pages import failing_metrics as differences
from tests.dashboards.pages.rendered import macro

HOSTILE = "<img src=x onerror=alert(1)>"


def workflow_diff(scores: list[dict]) -> str:
    return macro("verdicts.html", "workflow_diff", differences.workflow_diff("workflow", scores))


def failing_metrics(verdict: dict) -> str:
    return macro("verdicts.html", "failing_metrics", verdict)


def elsewhere(url: str | None) -> str:
    return macro("components.html", "elsewhere", url)


def score(metric, value=0.0, rating="fail", **more) -> dict:
    return {
        "metric": metric, "value": value, "rating": rating, "weight": 0.5, "status": "scored", "reason": "", **more,
    }  # fmt: skip


def side(metric, **names) -> dict:
    return score(metric, details={"included": [], "missing": [], "unexpected": [], **names})


def test_a_diff_says_in_words_what_was_expected_and_what_was_seen():
    diff = workflow_diff([side("agents", included=["research"]), side("tools", missing=["pdf"], unexpected=[HOSTILE])])
    assert diff.index("research") < diff.index("pdf") < diff.index("img")
    for stated in ("as expected", "expected, not called", "called, not expected"):
        assert stated in diff
    assert "<img" not in diff


def test_a_broken_order_shows_both_orders():
    broken = score("order", details={"expected": ["look", HOSTILE], "called": ["act"]})
    diff = workflow_diff([broken])
    assert "look → &lt;img" in diff
    assert "act" in diff
    assert workflow_diff([{**broken, "value": 1.0}]) == ""


def test_each_metric_that_fails_has_its_value_and_its_reason():
    verdict = {"rubric": "qa", "reason": "all in all", "scores": [
        score("accuracy", 0.25, reason="4 of 16"), score("tone", 0.9, rating="good", reason="fine"),
        score("cited", None, None, status="unavailable", reason="no judge"),
        score("asked", None, None, status="error", reason=HOSTILE),
        score("idle", None, None, status="unavailable", reason="unweighted", weight=0),
    ]}  # fmt: skip
    shown = failing_metrics(verdict)
    for stated in ("accuracy", "0.25", "4 of 16", "not available", "no judge", "&lt;img"):
        assert stated in shown
    for silent in ("tone", "all in all", "unweighted", "<img"):
        assert silent not in shown


def test_many_failing_metrics_are_cut_and_counted():
    shown = failing_metrics({"rubric": "qa", "scores": [score(f"m{n}") for n in range(9)]})
    assert shown.count('class="metric"') == 6
    assert "and 3 more" in shown


def test_where_no_metric_fails_by_itself_the_verdicts_own_reason_stands():
    assert (
        failing_metrics({"rubric": "qa", "reason": "together <too> little", "scores": []})
        == "together &lt;too&gt; little"
    )


def test_a_workflow_verdict_shows_its_diff_and_what_goes_beyond_it():
    shown = failing_metrics({"rubric": "workflow", "scores": [
        side("tools", missing=["pdf"]), score("call_budget", reason="all tools: 9 calls, at most 3"),
    ]})  # fmt: skip
    assert "expected, not called" in shown
    assert "9 calls, at most 3" in shown
    assert shown.count('class="metric"') == 1


def test_only_addresses_of_the_web_become_links():
    assert 'href="https://langfuse.example/t?a=1&amp;b=%22"' in elsewhere("https://langfuse.example/t?a=1&b=%22")
    for bad in (
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        " javascript:alert(1)",
        "data:text/html,x",
        "//evil",
        None,
        "",
    ):
        assert elsewhere(bad) == ""
    assert elsewhere('https://e/" onclick="x').count('"') == elsewhere("https://e/").count('"')


def test_a_session_stands_under_the_id_of_its_case():
    shown = macro(
        "verdicts.html", "verdict_table", [{"trace_id": None, "case_id": "ab" * 16, "passed": None}], 0, "all"
    )
    assert f'href="/traces/{"ab" * 16}"' in shown
    assert "incomplete" in shown
