"""Which verdicts are on which side, what belongs together, what is compared with its like."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.integrations.store.bounded_read import ComparedVerdict
from sidejudge.monitor.alerting.comparisons import MOST, UNANSWERED, ComparisonQuery, compare
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.comparison import Difference

PLACE = {"service": "shop", "environment": "prod", "rubric": "qa", "weight": 1.0}


def verdicts(n: int, *, begin: int = 0, fails: int = 1, **fields: object) -> list[ComparedVerdict]:
    return [
        ComparedVerdict(closed_ns=begin + i, passed=i % 10 >= fails, **{**PLACE, **fields})  # type: ignore[arg-type]  # as given
        for i in range(n)
    ]


RELEASES = [
    *verdicts(100, release="a"), *verdicts(200, begin=1_000, release="b"), *verdicts(300, begin=2_000, release="c"),
    *verdicts(50, begin=3_000),
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "sides", "n"),
    [
        (ComparisonQuery(split_ns=1_000), ("before", "after"), (100, 550)),
        (ComparisonQuery(by="release"), ("b", "c"), (200, 300)),
        (ComparisonQuery(by="release", a="a"), ("a", "c"), (100, 300)),
        (ComparisonQuery(by="release", b="b"), ("c", "b"), (300, 200)),
        (ComparisonQuery(by="release", a="c", b="a"), ("c", "a"), (300, 100)),
    ],
)
def test_the_sides_are_a_moments_or_the_last_two_versions_or_those_that_are_named(query, sides, n):
    (one,) = compare(RELEASES, query)
    assert (one.before, one.after) == sides
    assert isinstance(one.found, Difference)
    assert (one.found.before.n, one.found.after.n) == n


def test_a_version_is_the_one_of_exactly_its_name_before_one_that_is_shown_alike():
    found = [*verdicts(100, release="c\n"), *verdicts(100, begin=1_000, release="c")]
    (one,) = compare(found, ComparisonQuery(by="release", a="c\n", b="c"))
    assert (one.before, one.after) == ("c\n", "c")


def test_each_place_is_compared_for_itself_and_the_chance_of_an_error_is_split():
    rows = [*verdicts(200), *verdicts(200, rubric="text"), *verdicts(200, service="bank")]
    found = compare(rows, ComparisonQuery(split_ns=100, error=0.03))
    assert [(one.key.service, one.key.rubric) for one in found] == [("bank", "qa"), ("shop", "qa"), ("shop", "text")]
    assert all(isinstance(one.found, Difference) and one.found.error == pytest.approx(0.01) for one in found)


@pytest.mark.parametrize(("cluster", "clusters"), [("session", 40), ("user", 10), ("none", 200)])
def test_what_belongs_together_counts_as_one(cluster, clusters):
    rows = [v._replace(session=str(i % 40), user=str(i % 10)) for i, v in enumerate(verdicts(200))]
    after = [v._replace(closed_ns=v.closed_ns + 1_000, session=f"{v.session}'", user=f"{v.user}'") for v in rows]
    (one,) = compare([*rows, *after], ComparisonQuery(split_ns=1_000, cluster=cluster))
    assert isinstance(one.found, Difference)
    assert one.found.before.clusters == clusters


def test_names_that_are_rare_on_both_sides_are_one_stratum_together():
    rows = [
        *verdicts(100, name="often"), *verdicts(15, name="rare"), *verdicts(15, name="new"),
        *verdicts(100, begin=1_000, name="often"), *verdicts(9, begin=1_000, name="rare"),
    ]  # fmt: skip
    (alike,) = compare(rows, ComparisonQuery(split_ns=1_000))
    (plain,) = compare(rows, ComparisonQuery(split_ns=1_000, within="none"))
    assert isinstance(alike.found, Difference)
    assert isinstance(plain.found, Difference)
    assert (alike.found.strata, plain.found.strata) == (2, 1)
    assert alike.found.compared == 1.0


@pytest.mark.parametrize(
    ("others", "strata", "compared"),
    [
        ([("gone", 300, 0, 0), ("new", 0, 300, 5)], 1, 0.5),
        ([("gone", 300, 15, 0), ("new", 15, 300, 5)], 3, 1.0),
        ([(None, 300, 300, 0), *((f"chat {i}", 0, 1, 10) for i in range(300))], 2, 0.83),
    ],
    ids=["one goes and one comes", "one becomes rare and one frequent", "all of one kind have names of their own"],
)
def test_a_frequent_name_is_compared_with_itself_alone(others, strata, compared):
    rows = [*verdicts(300, name="often"), *verdicts(300, begin=1_000, name="often")]
    for name, before, after, fails in others:
        rows += [
            *verdicts(before, name=name, fails=fails), *verdicts(after, begin=1_000, name=name, fails=fails),
        ]  # fmt: skip
    (one,) = compare(rows, ComparisonQuery(split_ns=1_000))
    assert isinstance(one.found, Difference)
    assert (one.found.strata, round(one.found.compared, 2)) == (strata, compared)
    assert abs(one.found.difference) < 0.05


def test_a_metric_is_compared_where_it_has_a_value_also_of_verdicts_that_did_not_pass_or_fail():
    rows = [
        v._replace(metrics={"latency": (float(i % 7), False)}, passed=None) for i, v in enumerate(verdicts(100))
    ] + verdicts(50, begin=50)
    (one,) = compare(rows, ComparisonQuery(split_ns=50, metric="latency"))
    assert isinstance(one.found, Difference)
    assert (one.found.before.n, one.found.after.n) == (50, 50)
    assert compare(rows, ComparisonQuery(split_ns=50, metric=None))[0].key.service == "shop"


def test_without_a_version_there_is_nothing_to_compare_and_the_reason_is_named():
    (one,) = compare(verdicts(100), ComparisonQuery(by="prompt"))
    assert one.found == Unavailable("all verdicts are of one version: none is named")
    assert compare([], ComparisonQuery()) == []
    (one,) = compare(RELEASES, ComparisonQuery(by="release", a="b", b="b"))
    assert one.found == Unavailable("both sides are of one version: b")


def test_an_id_that_all_traffic_shares_is_not_one_cluster():
    rows = verdicts(200, session="default") + verdicts(200, begin=1_000, session="default")
    (one,) = compare(rows, ComparisonQuery(split_ns=1_000))
    assert isinstance(one.found, Difference)
    assert (one.found.before.clusters, one.found.after.clusters) == (10, 10)


def out(n: int, *, begin: int = 0, **fields: object) -> list[ComparedVerdict]:
    return [each._replace(passed=None, unanswered=True) for each in verdicts(n, begin=begin, **fields)]


def test_a_version_most_of_whose_traces_got_no_answer_is_not_compared_on_the_rest():
    rows = [*verdicts(200, fails=1, release="a"), *verdicts(90, begin=1_000, fails=10, release="b")]
    (worse,) = compare(rows, ComparisonQuery(by="release"))
    assert isinstance(worse.found, Difference)
    assert worse.found.is_worse()
    (one,) = compare([*rows, *out(91, begin=2_000, release="b")], ComparisonQuery(by="release"))
    assert one.found == Unavailable(f"most of the side after got no answer: {UNANSWERED}")
    (none,) = compare([*rows, *out(30, begin=2_000, release="c")], ComparisonQuery(by="release"))
    assert (none.before, none.after, none.found) == ("b", "c", one.found), "nobody was asked about c"


@pytest.mark.parametrize("worse_side", [False, True])
@pytest.mark.parametrize(("missing", "shown"), [(0, True), (4, True), (100, False)])
def test_traces_without_an_answer_count_both_ways(worse_side, missing, shown):
    fails = (1, 3)[:: 1 if worse_side else -1]
    rows = [*verdicts(200, fails=fails[0]), *verdicts(200, begin=1_000, fails=fails[1])]
    (one,) = compare([*rows, *out(missing, begin=1_000 + 500)], ComparisonQuery(split_ns=1_000))
    assert isinstance(one.found, Difference)
    assert one.found.is_worse(higher_is_better=worse_side) is shown
    assert one.found.difference == pytest.approx(-0.2 if worse_side else 0.2)
    assert one.unanswered == (0, missing)
    true_rates = [1 - fails[1] / 10, (200 * (1 - fails[1] / 10) + missing) / (200 + missing),
                  200 * (1 - fails[1] / 10) / (200 + missing)]  # fmt: skip
    assert all(one.found.lower < rate - (1 - fails[0] / 10) < one.found.upper for rate in true_rates)


def test_a_metric_of_another_rubric_is_not_missed_where_nobody_was_asked():
    valued = [each._replace(metrics={"cites": (1.0, False)}) for each in verdicts(20)]
    found = compare([*valued, *out(20, rubric="other")], ComparisonQuery(split_ns=10, metric="cites"))
    assert [one.key.rubric for one in found] == ["qa"]


def test_a_metric_that_few_traces_have_is_compared_beside_some_without_an_answer():
    rows = [*verdicts(500), *verdicts(500, begin=1_000)]
    rows = [each._replace(metrics={"cites": (i % 3 / 2, False)}) if i % 5 == 0 else each for i, each in enumerate(rows)]
    query = ComparisonQuery(split_ns=1_000, metric="cites")
    (one,) = compare([*rows, *out(110, begin=1_500)], query)
    assert isinstance(one.found, Difference)
    assert (one.found.after.n, one.unanswered) == (100, (0, 110))
    (most,) = compare([*rows, *out(501, begin=1_500)], query)
    assert most.found == Unavailable(f"most of the side after got no answer: {UNANSWERED}")
    (latest,) = compare([*rows, *verdicts(9, begin=3_000, release="d")], replace(query, by="release", a=None))
    assert latest.after != "d", "it has no such metric"


@pytest.mark.parametrize("missing", [1, 4])
def test_a_few_traces_of_another_place_without_an_answer_change_no_comparison(missing):
    rows = [*verdicts(200), *verdicts(200, begin=1_000, fails=3)]
    (alone,) = compare(rows, ComparisonQuery(split_ns=1_000))
    one, other = compare([*rows, *out(missing, begin=1_500, service="z")], ComparisonQuery(split_ns=1_000))
    assert one == alone, "neither is its interval wider"
    assert isinstance(other.found, Unavailable)
    assert UNANSWERED not in other.found.reason, "they were too few with their answers too: no gate stops for them"
    gone = compare([*rows, *out(90, service="z")], ComparisonQuery(split_ns=1_000))[1]
    assert isinstance(gone.found, Unavailable)
    assert UNANSWERED not in gone.found.reason, "nothing runs there any more"


def test_places_without_any_answer_leave_out_none_that_has_them():
    rows = [*verdicts(20, service="z"), *(row for n in range(MOST) for row in out(1, service=f"a{n}"))]
    found = compare(rows, ComparisonQuery(split_ns=10))
    assert (len(found), found[-1].key.service) == (MOST, "z")
    assert isinstance(found[-1].found, Difference)
