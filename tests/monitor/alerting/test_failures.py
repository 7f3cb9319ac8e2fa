"""Failures of a time: read once, joined by meaning where there are embeddings, and left alone by a store in trouble."""

from __future__ import annotations

from unittest.mock import patch

from sidejudge.integrations.store.errors import StoreUnavailable
from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.alerting import failures
from sidejudge.monitor.alerting.failures import FailureGroups
from sidejudge.scoring.trace.time_units import DAY_NS
from tests.scoring.status.test_failure_groups import verdict

NOW = 10 * DAY_NS
ONE, OTHER = "the greeting is missing", "it does not say hello"
DIRECTIONS = {ONE: [1.0, 0.0], OTHER: [0.9, 0.436]}


class Held:
    trouble = False

    def verdicts(self, **wanted):
        if self.trouble:
            raise StoreUnavailable("it is closed")
        assert wanted["passed"] == "false"
        if wanted["after"] is not None:
            return []
        assert wanted["since_ns"] == NOW - DAY_NS
        return [
            verdict(2, ("tone", "fail", None, ONE), closed_ns=NOW),
            verdict(1, ("tone", "fail", None, OTHER), closed_ns=NOW),
        ]


async def vectors(texts):
    return {text: DIRECTIONS[text] for text in texts}


async def test_reasons_that_mean_the_same_are_one_group_where_there_are_embeddings():
    apart = await FailureGroups(Held(), lambda: NOW).over(DAY_NS)
    joined = await FailureGroups(Held(), lambda: NOW, vectors).over(DAY_NS)
    assert [each.count for each in apart] == [1, 1]
    assert [each.count for each in joined] == [2]


async def test_what_a_store_in_trouble_does_not_give_stays_as_it_was():
    held = Held()
    groups = FailureGroups(held, lambda: NOW)
    await groups.refresh()
    known = groups.latest
    held.trouble = True
    await groups.refresh()
    assert groups.latest == known != ()


async def test_what_failed_in_the_period_before_is_counted_however_much_fails_now(tmp_path):
    store = Store(tmp_path / "store.sqlite3")
    try:
        for number in range(60):
            at_ns = NOW - DAY_NS * (number // 20) - number % 20  # the first of each twenty at the very end of a period
            stated = verdict(number, ("tone", "fail", None, ONE), closed_ns=at_ns)
            await store.finish(
                FinishedTrace(
                    trace_id=stated["trace_id"], service=None, reason="scored", completion="root_ended", revision=1,
                    details={}, verdicts=[stated], closed_ns=at_ns, chunks=0,
                )
            )  # fmt: skip
        for most, counts in ((failures.MOST, (21, 20)), (20, (20, 20))):
            with patch.object(failures, "MOST", most):
                (group,) = await FailureGroups(store, lambda: NOW).over(DAY_NS)
            assert (group.count, group.before) == counts
        for kept_ns, before in ((2 * DAY_NS, 20), (DAY_NS, None)):
            (group,) = await FailureGroups(
                store, lambda: NOW, kept_since=lambda now, kept_ns=kept_ns: now - kept_ns
            ).over(DAY_NS)
            assert (group.count, group.before) == (21, before), "what is not kept is not known to be none"
        (group,) = await FailureGroups(store, lambda: NOW).over(DAY_NS, NOW - DAY_NS)
        assert (group.count, group.before) == (20, 19), "of a time that is over, with its first moment, not its last"
    finally:
        store.close()
