"""Conditions: the list of all that a declaration watches, and the conditions on the monitor itself.

The monitor watches whether it can judge, keeps up, and has disk space and budget left. None of that is critical.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sidejudge.scoring.lexical.amount import amount
from sidejudge.scoring.statistics.estimate import Estimate
from sidejudge.scoring.status.status import Policy
from sidejudge.scoring.trace.time_units import MINUTE_NS

from .condition import PLACE, AlertFinding, Condition, Observed, Severity
from .declaration import Declaration
from .quality import metric_conditions, place, quality, share_found

TROUBLE: Final = "store_trouble"
"""The id of the condition that the monitor cannot do its work."""
_LEAST_LAGS = 5
_WAITS_S = 3600.0
_REFUSED = 5


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
            when="95th percentile of the time from when a trace's last span came to its verdict above "
            f"{limits.lag_s:g} s, or a trace has waited longer to be judged",
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
        Condition(
            id=TROUBLE, severity=Severity.WARNING, scope=(), unit="count",
            title="Traces cannot be kept or judged, or no status decided",
            when="the store cannot be written (a full disk, `store.max_bytes` is reached, damage), the loop that "
            "judges has failed, or no status can be decided",
            meaning="requests are refused meanwhile, and what their senders do not send again is lost; or statuses and "
            "alerts stand still",
            for_ns=MINUTE_NS, keep_ns=5 * MINUTE_NS, find=_trouble,
        ),
        Condition(
            id="connection_stalled", severity=Severity.WARNING, scope=("connection",), unit="count",
            title="A destination or a source cannot be used",
            when="a destination, `sources.langfuse`, a prompt of Langfuse or a place of references is *retrying* or "
            "*stopped* in any process",
            meaning="scores wait, traces are not read, questions are asked in the text that was read last, or verdicts "
            "are reached without their references",
            for_ns=10 * MINUTE_NS, keep_ns=5 * MINUTE_NS, find=_unusable,
        ),
        Condition(
            id="exports_waiting", severity=Severity.WARNING, scope=("connection",), unit="seconds",
            title="Verdicts wait too long to be sent", when="the oldest score or event has waited for an hour",
            meaning="more is judged than the destination takes: the budget of requests is too small, or it is slow",
            limit=_WAITS_S, for_ns=10 * MINUTE_NS, find=_waiting, muted_by="connection_stalled",
        ),
        Condition(
            id="requests_refused", severity=Severity.WARNING, scope=("code",), unit="count",
            title="Requests with traces are refused",
            when=f"at least {_REFUSED} OTLP requests in 15 minutes were answered with an error",
            meaning="their traces are seen by nobody unless the sender tries again; the status code shows what is "
            "wrong",
            limit=_REFUSED, for_ns=10 * MINUTE_NS, keep_ns=15 * MINUTE_NS, find=_refused,
        ),
        Condition(
            id="traffic_suspected", severity=Severity.WARNING, scope=("kind",), unit="count",
            title="Something is odd about the traffic",
            when="a monitor reports an anomaly: ids that are not random, traces that are torn, or claims about how "
            "traces were drawn that are not believed",
            meaning="verdicts are fewer than the configuration asks for, or weigh other than their senders claim",
            for_ns=10 * MINUTE_NS, keep_ns=15 * MINUTE_NS, find=_odd,
        ),
    )  # fmt: skip


def conditions(declared: Declaration) -> tuple[Condition, ...]:
    """All conditions, those on quality first. Ids are unique and never change: dashboards and runbooks name them."""
    return (*quality(declared), *metric_conditions(declared), *monitoring(declared))


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
    if facts.monitor is not None and facts.monitor.behind_s > limit_s:  # what is stuck has no lag yet
        yield AlertFinding(
            labels=(), breached=True, value=facts.monitor.behind_s, limit=limit_s,
            stated=f"the oldest trace has waited for {facts.monitor.behind_s:.0f} s to be judged",
        )  # fmt: skip
        return
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


def _trouble(facts: Observed) -> Iterator[AlertFinding]:
    if facts.monitor is not None:
        why = facts.monitor.trouble
        yield AlertFinding(labels=(), breached=why is not None, stated=why or "traces are kept and judged")


def _unusable(facts: Observed) -> Iterator[AlertFinding]:
    for name, why in facts.monitor.unusable.items() if facts.monitor is not None else ():
        yield AlertFinding(labels=(("connection", name),), breached=bool(why), stated=why or f"{name} can be used")


def _waiting(facts: Observed) -> Iterator[AlertFinding]:
    for name, waited_s in facts.monitor.waiting_s.items() if facts.monitor is not None else ():
        yield AlertFinding(
            labels=(("connection", name),), breached=waited_s > _WAITS_S, value=waited_s, limit=_WAITS_S,
            stated=f"what goes to {name} has waited for {waited_s:.0f} s",
        )  # fmt: skip


def _refused(facts: Observed) -> Iterator[AlertFinding]:
    for code, n in facts.monitor.refused.items() if facts.monitor is not None else ():
        yield AlertFinding(
            labels=(("code", code),), breached=n >= _REFUSED, value=float(n), limit=_REFUSED,
            stated=f"{amount(n, 'request')} answered with {code} in the last 15 minutes",
        )  # fmt: skip


def _odd(facts: Observed) -> Iterator[AlertFinding]:
    for kind, cause in facts.monitor.odd.items() if facts.monitor is not None else ():
        yield AlertFinding(
            labels=(("kind", kind),), breached=bool(cause), stated=cause or f"there are no {kind.replace('_', ' ')}"
        )
