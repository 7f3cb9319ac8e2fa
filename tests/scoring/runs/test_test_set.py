"""The test set against the seed's own class, on sets of any make-up."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.runs.test_set import TestSet, complexity_of
from tests.scoring.runs.seed_runner import SeedTestSet

values = st.one_of(st.none(), st.booleans(), st.sampled_from([0, 1, 1.0, 2, "1", "high", "medium", "", "a", []]))
tests_of_any_kind = st.lists(
    st.fixed_dictionaries(
        {"input": st.text(max_size=3)},
        optional={
            "tags": st.lists(st.sampled_from(["a", "b", "c"]), max_size=4),
            "complexity": st.sampled_from(["low", "medium", "high", "very high"]),
            "priority": values,
            "category": values,
        },
    ),
    max_size=12,
)
criteria = st.dictionaries(
    st.sampled_from(["priority", "category", "complexity", "tags", "nowhere"]), values, max_size=3
)


def both(tests: list[dict]) -> tuple[TestSet, SeedTestSet]:
    seed = SeedTestSet("s")
    for test in tests:
        seed.add_test(test)
    return TestSet(name="s", tests=tuple(tests)), seed


@given(tests_of_any_kind, criteria)
def test_filtering_is_the_seeds(tests, criteria) -> None:
    ours, seed = both(tests)
    assert ours.filter(**criteria) == seed.filter(**criteria)


@given(tests_of_any_kind)
def test_tags_and_complexities_are_counted_as_the_seed_counts_them(tests) -> None:
    ours, seed = both(tests)
    assert ours.tags == seed.tags
    assert Counter(map(complexity_of, ours.tests)) == seed.get_complexity_distribution()


def test_the_seeds_equality_is_pythons() -> None:
    ours = TestSet(name="s", tests=({"input": 1, "p": 1}, {"input": 2, "p": "1"}, {"input": 3}))
    assert [test["input"] for test in ours.filter(p=True)] == [1]
    assert [test["input"] for test in ours.filter(p=None)] == [3]
    assert len(ours.filter()) == 3
