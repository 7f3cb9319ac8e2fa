"""Exporter: the monitor's events and states as Prometheus metrics. The registry is injected; there is no global state.

Counters change when an event happens; gauges are read at each scrape. For Prometheus a counter that first appears as 1
has not increased. So every series that is known in advance is exported as 0, and those of a service when it is first
seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from prometheus_client import CollectorRegistry, Metric

from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.result.result import Failed, Method, NotApplicable, Scored
from sidejudge.scoring.status.service_status import OTHER, UNKNOWN_ENVIRONMENT, UNKNOWN_SERVICE, ServiceStatus
from sidejudge.scoring.status.status import WORST_FIRST, Status
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import State, Verdict

from . import families as f
from . import labels
from .application_metrics import ApplicationMetrics, RunMetrics, VersionMetrics, failure_gauges
from .collect import CONNECTION_STATES, Families, MetricValues, Sampled, Series, Snapshot, known
from .exposition import COARSE, LEFT_OUT, Detail, added_up, expose
from .judge_metrics import EmbeddingMetrics, JudgeMetrics, gauges
from .labels import CLASSES, IGNORED, IGNORED_LOGS, INCOMPLETE, REFUSED, SELECTIONS, SIGNALS, KnownLabels, LabelCap
from .window_metrics import LimitMetrics, agreement_gauges, alert_gauges, limit_gauges, reported_gauges, window_gauges

_ASKED = {Method.EMBEDDING, Method.JUDGE}


class Exporter:
    """Counts what the runtime reports and exposes it. Lives on the event loop; label values may come from traces."""

    def __init__(
        self, registry: CollectorRegistry, known: KnownLabels, *, label_cap: int = 50, detail: Detail = "full"
    ) -> None:
        self._known, self._cap, self._full = known, label_cap, detail == "full"
        self._named = known.rubrics_of
        self._rubrics = {rubric.id: rubric for rubric in known.rubrics}
        self._reached: Collection[str] = tuple(self._rubrics)
        self._bounds = {
            (rubric.id, criterion.metric.id): criterion.metric.bounds
            for rubric in self._rubrics.values()
            for criterion in rubric.criteria
        }
        configured: Mapping[str, Iterable[str]] = {
            "service": (), "environment": (),
            "rubric": self._rubrics, "metric": [metric for _, metric in self._bounds],
            "reason": (
                *known.ended_reasons, *known.rejected_reasons, *IGNORED, *IGNORED_LOGS, *known.forward_failures,
                *known.forward_unjudged, *chain(*known.destinations.values()),
            ),
            "destination": known.destinations,
            "scenario": known.violations, "kind": [*chain(*known.violations.values())],
        }  # fmt: skip
        self._caps = {label: LabelCap(label, label_cap, values) for label, values in configured.items()}
        self._elsewhere = {label: LabelCap(label, label_cap) for label in ("service", "environment")}
        """Names that only other monitors of the fleet judge: they take no place from what this one judges."""
        self._services: set[str] = set()
        self._pairs: set[tuple[str, str]] = set()
        self._judged: set[tuple[str, str, str, bool]] = set()
        self._selections: tuple[str, ...] = SELECTIONS if self._full or known.forced else SELECTIONS[:1]
        self._watched: Callable[[], Snapshot] = Snapshot
        counted = [
            family
            for family in f.FAMILIES
            if family.kind in ("counter", "histogram") or family is f.EXPORT_LAST_SUCCESS
        ]
        self._counted = MetricValues(counted) if self._full else MetricValues(counted, bounds=COARSE, added_up=added_up)
        self._counter, self._histogram = self._counted.counter, self._counted.histogram
        self._reloaded = 1
        infos = self._infos = {
            f.BUILD_INFO: {"version": known.version, "revision": known.revision, "python": known.python},
            f.CONFIG_INFO: {"fingerprint": known.fingerprint},
        }
        self.embedding = EmbeddingMetrics(self._counted)
        self.judge = JudgeMetrics(self._counted, known.judge, label_cap=label_cap) if known.judge is not None else None
        self.runs = RunMetrics(self._counted, service=self._service, label_cap=label_cap)
        self._versions = VersionMetrics(self._counted, label_cap=label_cap)
        self.application = ApplicationMetrics(self._counted, self._versions, bounded=self.bounded, label_cap=label_cap)
        self.limits = LimitMetrics(self._counted, known.limits, self.bounded)
        self._zeros()
        shown = [family for family in f.FAMILIES if self._full or family not in LEFT_OUT]
        self._families = Families(shown, self._counted, infos, self._gather)
        registry.register(self._families)

    def take_rubrics(
        self, rubrics: Iterable[Rubric], fingerprint: str, rubrics_of: Callable[[str], Collection[str]] | None = None,
        *, violations: Mapping[str, Sequence[str]],
    ) -> None:  # fmt: skip
        """Count by these rubrics and scenarios too: the configuration was reloaded and now has this fingerprint.

        ``rubrics`` are all that a route reaches. Others are counted further, for verdicts by them may be under way.
        """
        rubrics = list(rubrics)
        self._named, self._known = rubrics_of, replace(self._known, violations=violations)
        self._reached = [rubric.id for rubric in rubrics]
        for rubric in rubrics:
            self._rubrics[rubric.id] = rubric
            self._bounds |= {(rubric.id, each.metric.id): each.metric.bounds for each in rubric.criteria}
        self._caps["rubric"].know(self._rubrics)
        self._caps["metric"].know(metric for _, metric in self._bounds)
        self._caps["scenario"].know(violations)
        self._caps["kind"].know(chain(*violations.values()))
        self._infos[f.CONFIG_INFO] = {"fingerprint": fingerprint}
        self._zeros()

    def follow(self, totals: Iterable[Series]) -> None:
        """Bring counters up to what the parts of the monitor have counted since the start; labels are closed lists."""
        self._counted.follow(totals)

    def config_reloaded(self, *, successful: bool) -> None:
        """Record how the latest reload of the configuration went."""
        self._reloaded = int(successful)

    def watch(self, snapshot: Callable[[], Snapshot]) -> None:
        """Set the function that gives the gauges; it is called at every scrape."""
        self._watched = snapshot

    def exposition(self, accept: str = "", seen: Snapshot | None = None) -> Callable[[], tuple[bytes, str]]:
        """Take the gauges of this moment, and return the function that writes the exposition, in any thread.

        ``accept`` is the request's header; ``seen`` are the gauges, if the caller has them already. Counters are read
        while they are written, under the client's locks.
        """
        return partial(expose, self._families.at_once(self._gather(seen)), accept)

    def metrics(self) -> Callable[[], Iterable[Metric]]:
        """The families with the gauges of this moment, to be read in any thread."""
        return self._families.at_once().collect

    def bounded(self, service: str | None, environment: str | None) -> tuple[str, str]:
        """The label values of a service and an environment; a new pair gets its zeros."""
        if service and environment and (service, environment) in self._pairs:
            return service, environment  # a bounded label value stays as it is
        where = self._place(service, environment)
        if where not in self._pairs:
            self._pairs.add(where)
            self._service(where[0])
            self._zeros_of_pair(*where)
            self.limits.zeros(*where)
        return where

    def trace_kept(self, service: str | None, selection: str) -> None:
        """Sampling has chosen a trace."""
        self._counter(f.TRACES_KEPT, self._service(service), selection).inc()

    def traces_ended(self, service: str | None, reason: str, count: int) -> None:
        """Traces have ended with this reason; it is the ``on_ended`` of the outcomes."""
        self._counter(f.TRACES, self._service(service), self._label("reason", reason)).inc(count)

    def evaluation_lag(self, service: str | None, seconds: float) -> None:
        """Verdicts were reached this long after their trace's last span came."""
        # A sender's clock may run ahead of ours: what would be negative is no lag.
        self._histogram(f.EVALUATION_LAG, self._service(service)).observe(max(0.0, seconds))

    def exported(self, destination: str, count: int = 1, *, at_s: float | None = None) -> None:
        """Count ``count`` verdicts or scores as handed over; ``at_s`` is when one was accepted, None if none was."""
        label = self._label("destination", destination)
        self._counter(f.EXPORTS, label).inc(count)
        if at_s is not None:
            self._counted.gauge(f.EXPORT_LAST_SUCCESS, label).set(at_s)

    def export_failed(self, destination: str, reason: str, count: int = 1) -> None:
        """``count`` of the verdicts or scores that were handed over were not accepted, or not stored."""
        of, why = self._label("destination", destination), self._label("reason", reason)
        self._counter(f.EXPORTS_FAILED, of, why).inc(count)

    def alert_reported(self, alert: str, turn: str) -> None:
        """An alert changed, and its event was reported."""
        self._counter(f.ALERT_EVENTS, alert, turn).inc()

    def workflow_violation(self, scenario: str, kind: str, trace_id: str | None = None) -> None:
        """A trace departed from its scenario."""
        of, what = self._label("scenario", scenario), self._label("kind", kind)
        self._counter(f.WORKFLOW_VIOLATIONS, of, what).inc(1, _exemplar(trace_id))

    def verdict(self, verdict: Verdict, version: str | None = None) -> None:
        """A verdict was committed. The first on a trace is counted; a revision only as a revision.

        ``version`` is the application's, where it names one. Counters cannot take back what they counted: a revision
        moves the gauges of the window instead.
        """
        service, environment = self.bounded(verdict.service, verdict.environment)
        rubric = self._label("rubric", verdict.rubric)
        if verdict.revision > 1:
            self._counter(f.VERDICTS_REVISED, service, rubric).inc()
            return
        scored = {each.metric: each.result.value for each in verdict.scores if isinstance(each.result, Scored)}
        self._scores(scored, service, verdict.rubric, rubric)
        self.limits.values(
            verdict.service, verdict.environment, verdict.rubric, scored, 1.0 / verdict.sampling_probability
        )
        violating = verdict.violations
        exemplar = _exemplar(verdict.trace_id) if verdict.blockers or violating or verdict.passed is False else None
        for metric in verdict.blockers:
            self._counter(f.BLOCKERS, rubric, self._label("metric", metric)).inc(1, exemplar)
        passed = None if verdict.state is State.INCOMPLETE else verdict.passed
        self._first_of(service, environment, rubric, is_incomplete=passed is None)
        if passed is None:
            self._counter(f.VERDICTS_INCOMPLETE, service, rubric, _why_incomplete(verdict)).inc()
            return
        who, weight = (service, environment, rubric), 1.0 / verdict.sampling_probability
        self._counter(f.VERDICTS, *who, verdict.selection).inc()
        self._counter(f.VERDICT_WEIGHT, *who).inc(weight)
        self._counter(f.VERDICT_WEIGHT_SQUARED, *who).inc(weight * weight)
        self._versions.verdict((service, environment), rubric, version, weight=weight, passed=passed)
        if not passed:
            self._counter(f.VERDICTS_FAILED, *who, verdict.selection).inc(1, exemplar)
            self._counter(f.VERDICT_FAILED_WEIGHT, *who).inc(weight, exemplar)
        for metric in dict.fromkeys(verdict.blockers):
            blocked = (*who, self._label("metric", metric))
            self._counter(f.VERDICTS_BLOCKED, *blocked).inc(1, exemplar)
            self._counter(f.VERDICT_BLOCKED_WEIGHT, *blocked).inc(weight)
        if violating:
            self._counter(f.VERDICTS_VIOLATING, *who).inc(1, exemplar)
            self._counter(f.VERDICT_VIOLATING_WEIGHT, *who).inc(weight)

    def _scores(self, scored: Mapping[str, float], service: str, rubric: str, label: str) -> None:
        for metric, value in scored.items():
            low, high = self._bounds.get((rubric, metric), (0.0, None))
            if high is not None:
                share = (value - low) / (high - low)
                # 9 decimals: 0.7 of the scale belongs to the bucket 0.7 however it was computed.
                self._histogram(f.METRIC_SCORE, service, label, metric).observe(round(share, 9))

    def _zeros(self) -> None:
        """Series that exist before any event."""
        known, zeros = self._known, self._counted.zeros
        for rubric in self._rubrics.values():
            zeros((f.BLOCKERS, [rubric.id], _blocking(rubric)))
        zeros(
            (f.SPANS_REJECTED, known.rejected_reasons), (f.REQUESTS_REFUSED, map(str, REFUSED)),
            (f.SPANS_IGNORED, IGNORED), (f.LOG_RECORDS_IGNORED, IGNORED_LOGS),
            (f.FORWARD_FAILED, known.forward_failures), (f.FORWARD_UNJUDGED, known.forward_unjudged),
            (f.PULL_ERRORS, known.pull_failures),
            (f.BELATED_FAILED, known.revision_failures),
            (f.BELATED, ("revised", "unchanged") if known.revision_failures else ()),
        )  # fmt: skip
        if known.forward_failures:
            zeros((f.FORWARDED, SIGNALS), (f.FORWARD_ANSWERS, CLASSES), (f.FORWARD_WITHHELD,))
            if known.forward_ends:
                zeros(
                    (f.FORWARD_KEPT, SIGNALS), (f.FORWARD_KEPT_ENDED, known.forward_ends),
                    (f.FORWARD_UNKEPT, known.forward_unkept),
                )  # fmt: skip
        for destination, reasons in known.destinations.items():
            zeros((f.EXPORTS, [destination]), (f.EXPORTS_FAILED, [destination], reasons))
        for scenario, kinds in known.violations.items():
            named = [self._label("kind", kind) for kind in kinds]
            zeros((f.WORKFLOW_VIOLATIONS, [self._label("scenario", scenario)], named))
        zeros((f.ALERT_EVENTS, [each.id for each in known.conditions], [turn.value for turn in AlertTransition]))

    def _zeros_of_service(self, service: str) -> None:
        self._counted.zeros(
            (f.TRACES, [service], self._known.ended_reasons), (f.TRACES_KEPT, [service], self._selections)
        )
        if self._full:
            for rubric in self._rubrics_of(service):
                self._zeros_of_incomplete(service, rubric)

    def _zeros_of_incomplete(self, service: str, rubric: str) -> None:
        if self._full:
            self._counter(f.VERDICTS_REVISED, service, rubric)
        # The standard detail has the series that alerts on the judge need, and no zeros for others of a service.
        reasons = INCOMPLETE if self._full else ("error",) if self._asks(rubric) else ()
        self._counted.zeros((f.VERDICTS_INCOMPLETE, [service], [rubric], reasons))

    def _asks(self, rubric: str) -> bool:
        """Whether a metric of it may ask a judge or a model of embeddings."""
        declared = self._rubrics.get(rubric)
        return declared is None or any(_ASKED & {*each.metric.methods} for each in declared.criteria)

    def _rubrics_of(self, service: str) -> Mapping[str, Rubric]:
        """The rubrics that can judge this service; those behind ``__other__`` may be judged by any."""
        if self._named is None or service == OTHER:
            return self._rubrics
        named = self._named(service)
        return {name: rubric for name, rubric in self._rubrics.items() if name in named}

    def _zeros_of_pair(self, service: str, environment: str) -> None:
        if self._full:
            for rubric in self._rubrics_of(service):
                self._zeros_of_place(service, environment, rubric)

    def _first_of(self, service: str, environment: str, rubric: str, *, is_incomplete: bool) -> None:
        """In the standard detail the series of a service and a rubric begin with the first verdict of their kind."""
        who = (service, environment, rubric, is_incomplete)
        if not self._full and who not in self._judged:
            self._judged.add(who)
            self._zeros_of_incomplete(service, rubric)
            if not is_incomplete:
                self._zeros_of_place(service, environment, rubric)

    def _zeros_of_place(self, service: str, environment: str, rubric: str) -> None:
        zeros, who, declared = self._counted.zeros, ([service], [environment], [rubric]), self._rubrics.get(rubric)
        if declared is not None:
            blocking = _blocking(declared)
            zeros((f.VERDICTS_BLOCKED, *who, blocking), (f.VERDICT_BLOCKED_WEIGHT, *who, blocking))
            if declared.checks_scenario:
                zeros((f.VERDICTS_VIOLATING, *who), (f.VERDICT_VIOLATING_WEIGHT, *who))
        zeros(
            (f.VERDICT_WEIGHT, *who), (f.VERDICT_FAILED_WEIGHT, *who), (f.VERDICT_WEIGHT_SQUARED, *who),
            (f.VERDICTS, *who, self._selections), (f.VERDICTS_FAILED, *who, self._selections),
        )  # fmt: skip

    def _gather(self, seen: Snapshot | None = None) -> Callable[[], Sampled]:
        seen = self._watched() if seen is None else seen
        return partial(self._sampled, seen, list(self._placed(seen)))

    def _sampled(self, seen: Snapshot, placed: Sequence[tuple[tuple[str, str, str], ServiceStatus]]) -> Sampled:
        sampled: dict[f.Family, list[tuple[tuple[str, ...], float]]] = {family: [] for family in f.FAMILIES}
        own = known(
            (), (f.TRACES_OPEN, seen.traces_open), (f.CONFIG_VALID, 1), (f.CONFIG_RELOADED, self._reloaded),
            (f.SAMPLING_RATE, seen.sampling_rate), (f.LOAD_SHARE, seen.load_share), (f.JUDGING_BEHIND, seen.behind_s),
            (f.SPOOL_BYTES, seen.spool_bytes), (f.FORWARD_BUFFER_BYTES, seen.forward_buffer_bytes),
            (f.CONTENTS_BYTES, seen.contents_bytes),
        )  # fmt: skip
        anomalies = ((f.TRAFFIC_SUSPECTED, (str(kind),), float(there)) for kind, there in seen.anomalies.items())
        judge = gauges(seen.judge) if seen.judge is not None else ()
        alerts = chain(alert_gauges(self._known.conditions, seen.alerts), reported_gauges(seen.alerts, placed))
        shown = dict(reversed(placed))  # the worst stands first
        people = agreement_gauges(seen.agreement) if seen.agreement is not None else ()
        failures = failure_gauges(seen.failures, self._label)
        windows = chain.from_iterable(
            window_gauges(who, service_status, full=self._full) for who, service_status in shown.items()
        )
        waiting = self._waiting(seen)
        limited = limit_gauges(seen.metrics, self._known.limits, self._place_of_status(seen))
        parts = (
            own, self._queues(seen), anomalies, self._thresholds(), judge, alerts, people, _sources(seen), failures,
            windows, limited, waiting,
        )  # fmt: skip
        for family, values, value in chain(*parts):
            sampled[family].append((values, value))
        return sampled

    def _waiting(self, seen: Snapshot) -> Iterator[Series]:
        """Traces without an answer; those of places that one label stands for together."""
        found: dict[tuple[f.Family, tuple[str, ...]], float] = {}
        behind = seen.behind.items()
        for family, place, like, weight in (
            *((f.UNANSWERED, place, (), weight) for place, weight in seen.unanswered.items()),
            *((f.BEHIND, place, ("passed",), passed) for place, (_, passed) in behind),
            *((f.BEHIND, place, ("failed",), traces - passed) for place, (traces, passed) in behind),
        ):
            of = family, (*self._place(*place[:2]), self._label("rubric", place[2]), *like)
            found[of] = found.get(of, 0.0) + weight
        return ((*of, weight) for of, weight in found.items())

    def _thresholds(self) -> Iterator[Series]:
        for rubric in self._reached:
            bounds = self._known.own_thresholds.get(rubric, self._known.thresholds)
            yield f.PASS_RATIO_THRESHOLD, (rubric, Status.WARNING.value), bounds.warning
            yield f.PASS_RATIO_THRESHOLD, (rubric, Status.CRITICAL.value), bounds.critical

    def _placed(self, seen: Snapshot) -> Iterator[tuple[tuple[str, str, str], ServiceStatus]]:
        """The windows with their label values, the worst first: only the first with the same values is shown."""
        place = self._place_of_status(seen)
        placed = [
            ((*place(each.service, each.environment), self._label("rubric", each.rubric)), each)
            for each in seen.services
        ]  # in their order, for the first names have the places of the cap
        yield from sorted(placed, key=lambda each: WORST_FIRST.index(each[1].appraisal.status))

    def _queues(self, seen: Snapshot) -> Iterator[Series]:
        for name, queue in seen.queues.items():
            yield from known((name,), (f.QUEUE_ITEMS, queue.items), (f.QUEUE_OLDEST, queue.oldest_s))
        for export in seen.exports:
            yield from known(
                (export.destination,), (f.EXPORTS_DEAD, export.dead), (f.EXPORTS_UNSEEN, export.unseen),
                (f.EXPORTS_UNARRIVED, export.unarrived), (f.EXPORTS_HELD, export.held),
            )  # fmt: skip
        for name, state in seen.connections.items():
            for each in CONNECTION_STATES:
                yield f.CONNECTION_STATE, (name, each), float(each == state)

    def _place_of_status(self, seen: Snapshot) -> Callable[[str | None, str | None], tuple[str, str]]:
        return self._place if seen.fleet is None else partial(self._place, of_fleet=True)

    def _place(self, service: str | None, environment: str | None, *, of_fleet: bool = False) -> tuple[str, str]:
        def bound(label: str, value: str | None, unknown: str) -> str:
            own = self._caps[label]
            return (self._elsewhere[label] if of_fleet and not own.holds(value, unknown) else own).bound(value, unknown)

        where = bound("service", service, UNKNOWN_SERVICE), bound("environment", environment, UNKNOWN_ENVIRONMENT)
        full = len(self._pairs) >= labels.PER_CAP * self._cap
        return (where[0], OTHER) if full and where not in self._pairs else where

    def _service(self, service: str | None) -> str:
        if service in self._services:
            return service  # a bounded label value stays as it is
        label = self._caps["service"].bound(service, UNKNOWN_SERVICE)
        if label not in self._services:
            self._services.add(label)
            self._zeros_of_service(label)
        return label

    def _label(self, label: str, value: str) -> str:
        return self._caps[label].bound(value, "unknown")


def _sources(seen: Snapshot) -> Iterator[Series]:
    """The gauges of reading traces, of the fleet, and of late references."""
    if (pull := seen.pull) is not None:
        yield from known((), (f.PULL_LAG, pull.lag_s), (f.PULL_LAST_SUCCESS, pull.read_s))
    if (fleet := seen.fleet) is not None:
        yield from known(
            (), (f.FLEET_MONITORS, fleet.monitors), (f.FLEET_LEASES, len(fleet.leases)),
            (f.FLEET_LAST_SUCCESS, fleet.read_s), (f.FLEET_CLOCK_OFFSET, fleet.clock_offset_s),
        )  # fmt: skip
    if seen.late_references is not None:
        yield f.BELATED_GIVEN_UP, (), seen.late_references.given_up


def _blocking(rubric: Rubric) -> list[str]:
    """The metrics that can fail a verdict by themselves."""
    return [each.metric.id for each in rubric.criteria if each.blocker or each.prerequisite]


def _why_incomplete(verdict: Verdict) -> str:
    kinds = {type(score.result) for score in verdict.scores if score.weight}
    if Failed in kinds:
        return "error"
    return "not_applicable" if kinds <= {NotApplicable} else "unavailable"


def _exemplar(trace_id: str | None) -> dict[str, str] | None:
    """The exemplar of a trace; only a W3C id is one, for OpenMetrics allows 128 characters in all."""
    known = trace_id is not None and len(trace_id) == 32 and trace_id.isalnum() and trace_id.isascii()
    return {"trace_id": trace_id} if known and trace_id is not None else None
