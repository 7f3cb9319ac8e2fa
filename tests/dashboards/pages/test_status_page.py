from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.dashboards.pages.rendering import clip, render, security_policy
from sidejudge.dashboards.pages.status_page import MOST, MonitorReport, StatusChoice, StatusPage, status_page
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.service_status import FleetMonitor, FleetReport, ServiceStatus
from sidejudge.scoring.status.snapshots import CascadeSnapshot, FleetSnapshot
from sidejudge.scoring.status.status import Policy, appraise
from tests.dashboards.outline import Outline

NOW = 1_790_000_000 * 10**9


def standing(service="shop", environment="prod", rubric="qa", passes=20, failures=10) -> ServiceStatus:
    reported = estimate([(True, 1.0)] * passes + [(False, 1.0)] * failures)
    return ServiceStatus(
        service=service,
        environment=environment,
        rubric=rubric,
        estimate=reported,
        appraisal=appraise(reported, Policy()),
    )


def page(*statuses: ServiceStatus, failures=(), **changes) -> str:
    fields = {
        "services": statuses, "policy": Policy(), "window_ns": 3600 * 10**9, "seen": 12345, "revisions": 0,
        "open": 3, "ended": {"scored": 12, "sampled_out": 12330}, "sampling_rate": 0.01, "otlp_port": 4317,
        "sampling_rules": (), "version": "1.2.3", "fingerprint": "0123456789ab",
        "now_ns": NOW, "started_ns": NOW - 93_784 * 10**9,
    }  # fmt: skip
    of_report = {name: changes.pop(name) for name in [*changes] if name in MonitorReport.__dataclass_fields__}
    return status_page(StatusPage(report=MonitorReport(**{**fields, **of_report}), failures=failures, **changes))


def test_a_quiet_monitor_says_that_there_is_no_verdict_yet():
    text = " ".join(Outline(page()).text)
    assert "No verdict yet" in text
    assert "12,345" in text
    assert "1 d 2 h" in text
    assert "Latest failures" not in text


def test_the_worst_stands_first():
    text = page(standing("fine", passes=99, failures=1), standing("bad", passes=1, failures=99), standing("poor"))
    assert text.index(">bad<") < text.index(">poor<") < text.index(">fine<")


def test_of_equal_statuses_the_lowest_pass_ratio_stands_first_and_not_the_one_with_most_verdicts():
    text = page(
        standing("large", passes=1200, failures=100), standing("low", passes=88, failures=12),
        standing("lower", passes=87, failures=13), standing("many", passes=880, failures=120),
    )  # fmt: skip
    assert re.findall(r">(large|lower|low|many)<", text)[:4] == ["lower", "many", "low", "large"]


def shown(text: str) -> list[str]:
    return re.findall(
        r'href="/services\?service=([^&]*)', text.partition('id="services"')[2].partition("</section>")[0]
    )


def test_services_are_searched_by_every_word_and_sorted_by_a_column_either_way():
    many = [
        standing(f"shop-{n:03}", passes=n + 1, failures=0, environment="prod" if n % 2 else "test") for n in range(124)
    ]
    text = page(*many)
    assert len(shown(text)) == MOST
    assert 'href="/?services=all">show all 124</a>' in text
    assert len(shown(page(*many, choice=StatusChoice(whole=True)))) == 124
    found = page(*many, choice=StatusChoice(find="PROD shop-12"))
    assert shown(found) == ["shop-123", "shop-121"], "of equal ones the one that more is known of"
    assert 'value="PROD shop-12"' in found
    assert "is called so" in page(*many, choice=StatusChoice(find="<b>nobody"))
    assert shown(page(*many, choice=StatusChoice(sort="-Verdicts")))[:2] == ["shop-123", "shop-122"]
    assert shown(page(*many, choice=StatusChoice(sort="Service")))[:2] == ["shop-000", "shop-001"]
    assert 'id="find-service"' not in page(*many[:3]), "three are found without a search"


def test_the_head_of_a_column_sorts_by_it_and_turns_the_order_keeping_the_search():
    text = page(standing(), choice=StatusChoice(find="shop qa", sort="-Failed"))
    head = text.partition("<thead>")[2].partition("</thead>")[0]
    assert 'aria-sort="descending"><a href="/?find=shop+qa&amp;sort=Failed"' in head
    assert 'href="/?find=shop+qa&amp;sort=-Verdicts"' in head
    assert head.count("aria-sort") == 1


def test_failures_in_groups_lead_to_all_of_their_verdicts():
    group = FailureGroup(
        group="0badcafe", rubric="qa", metric="accuracy", code=None, words="<b>wrong", count=7, before=2,
        examples=("ab" * 16,),
    )  # fmt: skip
    text = page(standing(), groups=[group])
    assert 'href="/verdicts?rubric=qa&amp;passed=false&amp;last=1d&amp;metric=accuracy"' in text
    assert "&lt;b&gt;wrong" in text
    assert 'id="groups"' not in page(standing())


def test_a_window_without_an_estimate_shows_no_number():
    text = " ".join(Outline(page(standing(passes=0, failures=0))).text)
    assert "insufficient data" in text
    assert "0.0%" not in text


def test_the_fleet_is_shown_with_the_share_of_this_monitor():
    whole, own = standing("shop", passes=70, failures=20), standing("shop", passes=20, failures=10)
    other = FleetMonitor(
        name="east<1>", version="1.2.3", host="h", started_s=0.0, seen_s=7.0, state="working", verdicts=60
    )
    report = FleetReport(name="west", monitors=[other], services=[whole, standing("elsewhere")], own=[own], leader="e")
    fleet = FleetSnapshot(
        name="west",
        database="db:5432",
        state="wrong_clock",
        reason="this clock is 600 s behind",
        wrong_clock="this clock is 600 s behind",
    )
    outline = Outline(page(own, fleet=fleet, whole_fleet=report))
    text = " ".join(" ".join(outline.text).split())
    assert "this clock is 600 s behind. Until then" in text
    assert "east<1> working 60 7 s ago" in text
    assert "shop (prod) qa 90 30" in text
    assert "of the fleet; trends and the failures behind the links are this monitor's" in text
    assert "of the fleet;" not in " ".join(Outline(page(own, whole_fleet=replace(report, alone="away"))).text)
    assert "elsewhere (prod) qa 30 0" in text


def test_behind_a_cascade_it_says_what_the_stronger_judge_changed():
    seen = CascadeSnapshot(
        verdicts={"sure": 80, "doubt": 12, "drawn": 8}, changed={"doubt": 4, "drawn": 1}, unanswered=0,
        as_delivered=0.75, corrected=True,
    )  # fmt: skip
    text = " ".join(Outline(page(replace(standing("shop"), cascade=seen))).text)
    assert "the stronger judge was asked about 20 of 100 and turned 5; as delivered 75.0% pass" in text
    text = " ".join(Outline(page(replace(standing("shop"), cascade=replace(seen, unanswered=12)))).text)
    assert "and turned 5; 12 times it gave no answer; as delivered" in text
    text = " ".join(Outline(page(replace(standing("shop"), cascade=replace(seen, corrected=False)))).text)
    assert "with 8 drawn by lot the ratio is not corrected yet, 30 are needed" in text


def test_mode_point_is_said_to_compare_the_ratio():
    assert "warning when less than 85 % pass, critical below 70 %" in page(policy=Policy(mode="point"))
    assert "warning when less than 85 % pass, beyond chance, critical below 70 %" in page()


def test_failed_counts_link_to_those_verdicts():
    outline = Outline(page(standing("a b&c", "p?d")))
    assert "/verdicts?service=a+b%26c&environment=p%3Fd&rubric=qa&passed=false" in outline.loads


def test_everything_is_on_the_page_itself_and_the_policy_allows_its_one_style_sheet_and_script():
    text = page(standing())
    outline = Outline(text)
    assert all(link.startswith(("/", "#", "data:image/svg+xml,")) for link in outline.loads)
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in security_policy()


hostile = st.one_of(
    st.text(max_size=400),
    st.sampled_from(
        ["<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "</style><b>", "&lt;", "\x00\u2028\u202e"]
    ),
)


@given(hostile, hostile, hostile, st.sampled_from(["a" * 32, None]))
def test_no_text_from_a_trace_can_add_a_tag_an_attribute_or_a_link(service, environment, reason, trace_id):
    failure = {
        "trace_id": trace_id,
        "service": service,
        "rubric": "qa",
        "composite": 0.5,
        "reason": reason,
        "pass_mark": 1,
    }
    plain = Outline(page(standing(), failures=[{**failure, "service": "shop", "reason": "why"}]))
    outline = Outline(page(standing(service, environment), failures=[failure]))
    assert outline.tags == plain.tags
    assert len(outline.loads) == len(plain.loads)


@given(st.text(alphabet=st.characters(), max_size=500))
def test_escaped_text_is_short_inert_and_on_one_line(text):
    escaped = clip(text)
    assert not set(escaped) & set("<>\"'\n\r")
    escaped.encode()
    assert len(escaped) <= 300 * len("&quot;")


@pytest.mark.parametrize(("refresh", "present"), [(10, True), (None, False)])
def test_a_page_reloads_itself_only_when_asked_to(refresh, present):
    assert ('http-equiv="refresh"' in render("page.html", title="t", refresh_s=refresh)) is present
