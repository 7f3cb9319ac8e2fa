"""Conditions on the monitor itself: whether it can judge, keeps up, and has room and money left. None is critical."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.scoring.lexical.amount import amount
from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.status.status import Policy

from .condition import PLACE, Condition, Severity
from .declaration import Declaration
from .finding import AlertFinding
from .observed import Observed
from .quality import place, share_found

_LEAST_LAGS = 5


def monitoring(declared: Declaration) -> tuple[Condition, ...]:
    """The conditions on the monitor under this declaration."""
    limits, policy = declared.limits, declared.policy
    return (
        Condition(
            id="judge_failure_rate", severity=Severity.WARNING, scope=PLACE, unit="ratio",
            title="The judge fails",
            when=f"lower bound of the share of verdicts that are incomplete because of the judge above "
            f"{limits.judge_failed_ratio:g}; at least {policy.min_samples:g} verdicts "
            f"and {policy.min_failures} failures",
            meaning="these verdicts are missing from the pass rate, which is not lower for it; see its worst case",
            limit=limits.judge_failed_ratio, for_ns=limits.for_ns, keep_ns=limits.keep_ns,
            find=lambda facts: _judge_failed(facts, limits.judge_failed_ratio, policy),
        ),
        Condition(
            id="judge_unreachable", severity=Severity.WARNING, scope=(), unit="count",
            title="No judge can be asked",
            when="no majority of the judges has a closed circuit breaker",
            for_ns=limits.for_ns // 2, keep_ns=limits.keep_ns // 15,
            meaning="what needs the judge waits; no quality status changes because of it",
            find=_unreachable,
        ),
        Condition(
            id="judge_agreement_low", severity=Severity.WARNING, scope=("rubric",), unit="ratio",
            title="The judge does not agree with people",
            when=f"upper bound of the agreement (kappa) below {limits.agreement:g}",
            meaning="its verdicts on this rubric are not to be relied on until it is mended",
            limit=limits.agreement, find=lambda facts: _agreement(facts, limits.agreement, policy),
        ),
        Condition(
            id="judge_drift", severity=Severity.WARNING, scope=("metric",), unit="count",
            title="The judge moved",
            when="the judge answers past prompts otherwise: in one direction, or more of them than it used to",
            meaning="a change of this metric may be the judge's and not the application's: compare nothing across it",
            find=_drift,
        ),
        Condition(
            id="judge_budget", severity=Severity.WARNING, scope=("period",), unit="ratio",
            title="The judge's budget is nearly spent",
            when=f"more than {limits.budget_ratio:.0%} of the hour's or day's budget is spent",
            meaning="fewer cases are judged until the period is over; estimates stay unbiased, with wider bounds",
            limit=limits.budget_ratio, find=lambda facts: _budget(facts, limits.budget_ratio),
        ),
        Condition(
            id="evaluation_lag", severity=Severity.WARNING, scope=(), unit="seconds",
            title="Verdicts come late",
            when=f"95th percentile of the time from a trace's end to its verdict above {limits.lag_s:g} s",
            meaning="the status is as old as the verdicts it is made of", for_ns=limits.for_ns, keep_ns=limits.keep_ns,
            limit=limits.lag_s, find=lambda facts: _lag(facts, limits.lag_s),
        ),
        Condition(
            id="spool_large", severity=Severity.WARNING, scope=(), unit="bytes",
            title="The working store is large",
            when=f"the store is larger than {limits.spool_bytes / 2**20:g} MiB", for_ns=limits.for_ns // 2,
            meaning="a full disk would stop the intake; see what waits, or shorten the retention",
            limit=float(limits.spool_bytes), find=lambda facts: _spool(facts, limits.spool_bytes),
        ),
    )  # fmt: skip


def _judge_failed(facts: Observed, limit: float, policy: Policy) -> Iterator[AlertFinding]:
    for window in facts.windows:
        events: Estimate | None = window.judge_failed
        yield share_found(place(window.status), events, limit, policy, "incomplete because of the judge")


def _unreachable(facts: Observed) -> Iterator[AlertFinding]:
    judge = facts.judge
    if judge is not None:
        why, wait = judge.unreachable, "waits" if judge.waiting == 1 else "wait"
        yield AlertFinding(
            labels=(), breached=why is not None, n=judge.waiting,
            stated="the judge can be asked" if why is None else f"{why}; {amount(judge.waiting, 'case')} {wait}",
        )  # fmt: skip


def _agreement(facts: Observed, limit: float, policy: Policy) -> Iterator[AlertFinding]:
    if not facts.agreements:
        yield AlertFinding(
            labels=(), breached=None, stated="no verdict has been compared with people's yet", n=0, limit=limit
        )
    for known in facts.agreements:
        enough = known.n >= policy.min_samples
        yield AlertFinding(
            labels=(("rubric", known.rubric),), breached=known.upper < limit if enough else None,
            value=known.kappa, upper=known.upper, n=known.n, limit=limit,
            stated=f"kappa {known.kappa:.2f}, at most {known.upper:.2f}, of {known.n} verdicts that people judged too",
        )  # fmt: skip


def _drift(facts: Observed) -> Iterator[AlertFinding]:
    for each in facts.drifts:
        yield AlertFinding(
            labels=(("metric", each.metric),), breached=each.moved, n=each.n,
            value=float(max(each.higher, each.lower, each.changed)),
            stated=f"of {each.n} past prompts {each.higher} get a higher answer on {each.metric} than at first and "
            f"{each.lower} a lower one, {each.changed} another one (p = {each.p:.2g}, moved at {each.error:.2g}); "
            "the prompts are the same",
        )  # fmt: skip


def _budget(facts: Observed, limit: float) -> Iterator[AlertFinding]:
    for spending in facts.judge.spending if facts.judge is not None else ():
        if spending.limit_usd is not None and spending.limit_usd > 0:
            share = spending.spent_usd / spending.limit_usd
            yield AlertFinding(
                labels=(("period", spending.period),), breached=share > limit, value=share, limit=limit,
                stated=f"${spending.spent_usd:.2f} of ${spending.limit_usd:.2f} spent this {spending.period}",
            )  # fmt: skip


def _lag(facts: Observed, limit_s: float) -> Iterator[AlertFinding]:
    known = facts.lag_s is not None and facts.lag_n >= _LEAST_LAGS
    yield AlertFinding(
        labels=(), breached=facts.lag_s > limit_s if known and facts.lag_s is not None else None,
        value=facts.lag_s if known else None, n=facts.lag_n, limit=limit_s,
        stated=f"95 % of {facts.lag_n} traces within {facts.lag_s:.1f} s" if known else "too few traces",
    )  # fmt: skip


def _spool(facts: Observed, limit: int) -> Iterator[AlertFinding]:
    size = facts.spool_bytes
    yield AlertFinding(
        labels=(), breached=None if size is None else size > limit, value=None if size is None else float(size),
        limit=float(limit),
        stated="the size is not known" if size is None else f"{size / 2**20:.1f} MiB of {limit / 2**20:g} MiB",
    )  # fmt: skip
