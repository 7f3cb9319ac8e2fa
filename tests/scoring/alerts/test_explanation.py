"""What explains a drop: the slice that fails, what was before, what is new; and nothing where nothing is different."""

from __future__ import annotations

import json
import random
from dataclasses import asdict

import pytest
from msgspec import convert

from sidejudge.scoring.alerts.explanation import (
    GROUP,
    TOOL,
    Cause,
    Explanation,
    FailureCount,
    SlicedVerdict,
    explain,
    with_causes,
)

SINCE_NS, SECOND_NS = 10**18, 10**9


def traffic(rng, *, n=300, before=0.96, now=0.96, bad=(), cluster=1, values=5, versions=None, weight=None):
    """So many verdicts on each side of the moment; ``bad``: (dimension, value, pass ratio since)."""
    for place in range(-n, n):
        at_ns = SINCE_NS + place * SECOND_NS
        slices = {"metadata.tenant": f"t{rng.randrange(values)}", "name": rng.choice(["ask", "chat"])}
        ratio = before if place < 0 else now
        for by, value, worse in bad:
            if place >= 0 and slices[by] == value:
                ratio = worse
        passed = rng.random() < ratio
        for member in range(cluster):
            yield SlicedVerdict(
                at_ns=at_ns, passed=passed, weight=weight(rng, passed) if weight else 1.0,
                cluster=f"{place}" if cluster > 1 and member >= 0 else None, slices=slices,
                versions=versions(place) if versions else {"version": "1"},
            )  # fmt: skip


def test_the_tenant_that_fails_is_named_with_its_share_and_the_others():
    found = explain(traffic(random.Random(1), bad=[("metadata.tenant", "t3", 0.3)]), SINCE_NS)
    (worst,) = found.slices
    assert (worst.by, worst.value) == ("metadata.tenant", "t3")
    assert worst.pass_ratio < 0.5
    assert worst.others > 0.9
    assert worst.share > 0.7
    assert worst.n + worst.others_n == found.now.n == 300
    assert found.before.n == 300
    assert found.before.ratio < 0.1 < found.now.ratio


@pytest.mark.parametrize("cluster", [1, 5])
@pytest.mark.parametrize("weight", [None, lambda rng, passed: rng.choice([1.0, 1.8])])
def test_where_all_fail_alike_a_value_is_named_in_one_of_twenty_notices_at_most(cluster, weight):
    rng, named = random.Random(2), 0
    for _ in range(120):
        found = explain(traffic(rng, n=200 // cluster, now=0.7, cluster=cluster, weight=weight), SINCE_NS)
        named += bool(found and found.slices)
    assert named <= 120 * 0.05 + 4 * (120 * 0.05 * 0.95) ** 0.5


def test_all_of_the_traffic_is_no_slice_and_a_share_of_nothing_none():
    everywhere = explain(traffic(random.Random(3), now=0.2, values=1), SINCE_NS)
    assert [each.by for each in everywhere.slices if each.by == "metadata.tenant"] == []
    assert explain(traffic(random.Random(3), before=1.0, now=1.0), SINCE_NS) is None
    assert explain([], SINCE_NS) is None


def test_a_version_is_new_only_where_it_was_first_seen_as_the_drop_began():
    new = explain(
        traffic(random.Random(4), now=0.4, versions=lambda at: {"version": "2" if at >= -20 else "1"}), SINCE_NS
    )
    assert [(each.by, each.value, each.first_ns) for each in new.new] == [("version", "2", SINCE_NS - 20 * SECOND_NS)]
    old = explain(traffic(random.Random(4), now=0.4, versions=lambda at: {"version": f"{at % 2}"}), SINCE_NS)
    assert old.new == ()
    unstated = explain(
        traffic(random.Random(4), now=0.4, versions=lambda at: {"prompt": "2"} if at >= 0 else {}), SINCE_NS
    )
    assert unstated.new == (), "an application that begins to state a version did not change it"


def test_without_enough_before_there_is_no_before_and_the_slice_is_named_all_the_same():
    verdicts = [each for each in traffic(random.Random(5), bad=[("name", "chat", 0.4)]) if each.at_ns >= SINCE_NS]
    found = explain(verdicts, SINCE_NS)
    assert found.before is None
    assert found.new == ()
    assert [each.value for each in found.slices if each.by == "name"] == ["chat"]


def test_the_order_of_verdicts_changes_nothing_and_it_reads_back():
    verdicts = list(traffic(random.Random(6), n=600, bad=[("name", "ask", 0.5), ("metadata.tenant", "t1", 0.1)]))
    found = explain(verdicts, SINCE_NS)
    assert len(found.slices) == 2
    random.Random(7).shuffle(verdicts)
    assert explain(verdicts, SINCE_NS).slices[0].value == found.slices[0].value
    assert convert(json.loads(json.dumps(asdict(found))), Explanation) == found


CAUSES = [
    (Cause(by=TOOL, value="refund", count=35, share=0.0), 10),
    (Cause(by=GROUP, value="0a1b2c3d", count=20, share=0.0, words="refund: timeout"), 0),
    (Cause(by=TOOL, value="search", count=20, share=0.0), 40),  # as often as before
    (Cause(by=GROUP, value="rare", count=2, share=0.0), 0),
]


@pytest.mark.parametrize(
    ("before", "shares"),
    [
        (FailureCount(20, 200, 0.1), {"refund": 0.75, "0a1b2c3d": 0.5}),
        (None, {"refund": 0.7, "search": 0.4, "0a1b2c3d": 0.4}),
    ],
)
def test_tools_and_failure_groups_have_their_share_of_the_failures_that_are_not_usual(before, shares):
    known = Explanation(since_ns=SINCE_NS, now=FailureCount(50, 100, 0.5), before=before)
    found = with_causes(known, CAUSES, 50, 20)
    assert {each.value: each.share for each in found.causes} == pytest.approx(shares)
    assert convert(json.loads(json.dumps(asdict(found))), Explanation) == found
    assert with_causes(known, CAUSES, 0, 0) is known
