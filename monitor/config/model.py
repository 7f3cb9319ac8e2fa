"""Config: everything an operator can set, with its default, unit and meaning. No file is needed.

Every class here is a section of the YAML file; a field's name is its key, and the text below it is what the key means.
The reference page configuration.md and the JSON Schema are generated from these declarations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from sidejudge.integrations.langfuse.client import Access
from sidejudge.scoring.trace.span import Json  # noqa: F401  # pydantic looks here for what JsonMap names
from sidejudge.scoring.verdict.rubric import all_criteria

from .alerts import AlertsSection
from .evaluators import EvaluatorsSection, Priority
from .fleet import DrainSection, FleetSection, PeersSection
from .langfuse import LangfuseProject
from .match import MatchSection
from .metric_limits import metric_limits
from .notify import names
from .rubric_section import BudgetSection, RubricSection
from .sampling import FIXED_RATE, SamplingSection
from .section import (
    BY_RUBRIC,
    DEFAULT_JUDGE,
    GIVEN_AS_LIST,
    NAMED_ONCE,
    FilePath,
    JsonMap,
    Patterns,
    PersonalData,
    Rate,
    RubricName,
    Section,
    Share,
)
from .sinks import SinksSection
from .sources import AuthSection, ForwardSection, ReferenceSection, SourcesSection, TlsSection
from .units import Address, Duration, PositiveDuration, SizeField, parse_address, parse_duration

if TYPE_CHECKING:
    from sidejudge.scoring.verdict.rubric import Rubric


class ApiSection(Section):
    """The status page, the HTTP API, the probes and ``/metrics``."""

    listen: Address = parse_address("0.0.0.0:8790")
    """address to listen on, host:port"""
    contents: Literal["loopback", "always", "never"] = "loopback"
    """who may see contents (conversations and spans of traces while these are held, quotations in reasons and details
    of verdicts): callers on this machine (`kubectl port-forward` is one) with the token beside the store, which is in
    the link that `serve` prints; every admitted caller; or nobody
    """
    reload: bool = False
    """whether `POST /-/reload` reads this file and the rubric files again, as SIGHUP does; every admitted caller may
    then do so
    """
    auth: AuthSection | None = None
    """credentials of callers, for everything except the probes; without it none are required"""
    tls: TlsSection | None = None
    """encryption; without it none"""


class ReloadSection(Section):
    """When the configuration is read again by itself; SIGHUP has it read at any time, `POST /-/reload` as allowed.

    Rubrics, routes and scenarios change without a restart; the log names what needs one.
    """

    watch: bool = False
    """whether it is read again when this file, a rubric file, or a file that one of them names has changed; a ConfigMap
    that is mounted changes as a whole"""
    every: PositiveDuration = parse_duration("10s")
    """time between two looks at the files"""
    prompts: PositiveDuration = parse_duration("1m")
    """time between two requests for each prompt of Langfuse that a question uses; a new version of one has the
    configuration read again"""


class KeepContentsSection(Section):
    """Spans that are kept after the late window, for the page of a trace, `try` and `testcase`.

    Texts in them are redacted before they are written. `forget` erases them.
    """

    failed: Duration | None = None
    """how long contents of traces that failed or are incomplete stay (default: as long as their verdicts); `0s` keeps
    none of any trace, and deletes those that were kept"""
    passed: Share = 0.0
    """share of the other traces that were judged, drawn at random, whose contents stay too"""
    max_bytes: SizeField = 128 * 2**20
    """bytes of all contents that are kept, compressed; the oldest go first. At most a quarter of `store.max_bytes` is
    used"""
    redact: PersonalData = ()
    """kinds of personal data that are replaced by their name (`[email]`), also in verdicts' quotations at every
    destination; keys, and the kinds of `evaluators.judge`, always are
    """
    redact_patterns: Patterns = ()
    """patterns in RE2's syntax; matches are replaced by `[redacted]`"""


class StoreSection(Section):
    """The SQLite file that holds sampled spans until they are judged, and verdicts for a while after."""

    path: FilePath = Path("./state/sidejudge.sqlite")
    """file, relative to the working directory"""
    on_damage: Literal["stop", "recover"] = "stop"
    """what a start does with a damaged file: `stop` reports it; `recover` moves its readable rows to a new file, keeps
    the damaged one beside it, and logs the losses; this reads the whole file
    """
    retention: PositiveDuration = parse_duration("24h")
    """how long verdicts and details of traces are kept (as long as `references`, or scores of others that a rubric asks
    for, may revise them, if that is longer)"""
    max_bytes: SizeField | None = None
    """largest size of the file; its log may have 64 MiB more. From 80 % on old rows are dropped early, from 90 % on
    requests are answered 503. The disk is the limit in any case: of its last 16 MiB new spans take nothing
    """
    keep_contents: KeepContentsSection = KeepContentsSection()


class AssemblySection(Section):
    """When a trace is taken as finished."""

    grace: Duration = parse_duration("2s")
    """wait after the root ended and no parent is missing"""
    idle: PositiveDuration = parse_duration("30s")
    """close a trace that got no span for this long"""
    idle_max: PositiveDuration | None = None
    """the largest adapted `idle` for a service whose traces pause longer: twice the pause that 95 % of them stay within
    (default: four times `idle`; the same as `idle` to keep it fixed)
    """
    deadline: PositiveDuration = parse_duration("10m")
    """close a trace this long after its first span in any case"""
    late: Duration = parse_duration("10m")
    """spans that come this late after the close make a revision; with `sources.langfuse` its `look_back` where that is
    longer"""
    max_open_traces: int = Field(default=10_000, gt=0)
    """beyond it the oldest open trace is closed (pressure)"""
    max_open_bytes: SizeField = 128 * 2**20
    """bytes of open traces; beyond it the oldest is closed (pressure)"""
    max_waiting_traces: int = Field(default=5_000, gt=0)
    """closed traces that may wait to be judged. From a quarter of it on the sampling rate is lowered step by step, down
    to a thousandth, with the true probability in each verdict; beyond it requests get 503"""
    root_wait: Duration = parse_duration("24h")
    """how long a trace without its root yet stays open, where at least four fifths of its service's traces have roots,
    and at most a fifth of those lack another span: `idle` and `deadline` do not close it (0s: they do). Under pressure
    such traces are closed first, beginning with the longest idle. One whose latest step failed may have ended there,
    for some clients send no root of what raises: it is closed once its root is overdue, `deadline` after its first span
    or twice as long as the service's roots took lately. A root that comes later revises its verdicts
    """
    max_trace_spans: int = Field(default=10_000, gt=0)
    """most spans of one trace; further ones are counted, and it is judged as cut short"""
    max_trace_bytes: SizeField = 64 * 2**20
    """memory that the spans of one trace may take once decoded, by an upper estimate (a text takes 6 times its size, an
    empty attribute 600 bytes); further spans are counted, and it is judged as cut short
    """


class RouteSection(Section):
    """Which rubrics judge which traces. The first route that matches wins."""

    name: str | None = Field(default=None, min_length=1)
    """name shown in a trace's explanation (default: routes[N])"""
    match: MatchSection = MatchSection()
    """which traces it is for; without it: all"""
    rubrics: Annotated[tuple[RubricName, ...], GIVEN_AS_LIST, NAMED_ONCE]
    """rubrics to judge by; an empty list excludes matching traces"""
    scenario: str | None = None
    """name of the scenario that `workflow` checks against"""
    priority: Priority = "normal"
    """whose traces go first when the judge's budget does not reach for all"""

    @field_validator("scenario")
    @classmethod
    def _exists(cls, name: str | None, info: ValidationInfo) -> str | None:
        known = (info.context or {}).get("scenarios")
        if name is not None and known is not None and name not in known:
            raise ValueError(f"there is no scenario {name!r}\x00{','.join(known)}")
        return name


class SessionsSection(Section):
    """Conversations: traces that share a session id, judged as one when no more come. Off unless configured.

    Every trace is then held until it is whole, at any sampling rate, because only then its session is known.
    """

    routes: Annotated[tuple[RouteSection, ...], GIVEN_AS_LIST] = Field(min_length=1)
    """which rubrics judge which sessions; the first that matches wins. A rubric judges sessions or traces, never both:
    a pass rate counts one kind of case
    """
    sampling_rate: Rate | None = Field(
        default=None,
        description="share of the sessions to judge, drawn by session id, in (0, 1] (default: `sampling.rate`, or "
        f"{FIXED_RATE:g})",
    )
    idle: PositiveDuration = parse_duration("15m")
    """a session is over after this long"""
    late: Duration = parse_duration("15m")
    """a trace that comes this long after that makes a revision; later it begins a new session"""
    max_turns: int = Field(default=200, gt=1)
    """a session of more traces is judged as cut short (pressure)"""


class MetricsSection(Section):
    """Prometheus metrics."""

    label_cap: int = Field(default=50, ge=1)
    """distinct values of a label; more are counted as `__other__`"""
    detail: Literal["standard", "full"] = "standard"
    """`standard`: families that rules, boards and documentation use; `full`: all families, and by service those that
    are otherwise summed as `__all__`
    """


class LogSection(Section):
    """Logs on standard error. Contents of traces are never logged."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """least severe level that is logged"""
    format: Literal["auto", "json", "text"] = "auto"
    """`auto`: text on a terminal, else JSON"""


class Config(Section):
    """The whole configuration of a monitor."""

    api: ApiSection = ApiSection()
    reload: ReloadSection = ReloadSection()
    sources: SourcesSection = SourcesSection()
    forward: ForwardSection | None = None
    """sidecar mode; without it nothing goes on"""
    store: StoreSection = StoreSection()
    drain: DrainSection | None = None
    """for a store that ends with the process; without it unfinished work stays in the store"""
    assembly: AssemblySection = AssemblySection()
    peers: PeersSection | None = None
    """for several monitors behind a Collector; without it none is asked for missing spans; sidecars do not need it"""
    sampling: SamplingSection = SamplingSection()
    routes: Annotated[tuple[RouteSection, ...], GIVEN_AS_LIST] = ()
    """which rubrics judge which traces; without any: `metadata.task` names the rubric"""
    default_rubrics: Annotated[tuple[RubricName, ...], GIVEN_AS_LIST] = ("run_health",)
    """rubrics for traces that no route matches and no task names; an empty list leaves them unjudged"""
    budgets: Annotated[tuple[BudgetSection, ...], GIVEN_AS_LIST] = ()
    """limits on a run's effort; `run_health` fails a run above one. The first that matches wins"""
    sessions: SessionsSection | None = None
    """judge conversations of several traces as one"""
    scenarios: Mapping[str, JsonMap] = Field(default_factory=dict, json_schema_extra={"type": ["object", "string"]})
    """scenarios by name, or the path of a YAML file of them, relative to this file"""
    references: Annotated[tuple[ReferenceSection, ...], GIVEN_AS_LIST] = (
        ReferenceSection(metadata="expected_outcome"),
    )
    """where expected outcomes are found; the first one wins"""
    evaluators: EvaluatorsSection = EvaluatorsSection()
    rubrics: Annotated[Mapping[RubricName, RubricSection], BY_RUBRIC] = Field(default_factory=dict)
    """your own rubrics, and changes to built-in ones, by rubric id"""
    rubric_files: Annotated[tuple[str, ...], GIVEN_AS_LIST] = ()
    """YAML files with more of them (below `rubrics:` or not), relative to this file; `*` is any name"""
    _declared: Mapping[str, Rubric] = PrivateAttr(default_factory=dict)
    alerts: AlertsSection = AlertsSection()
    sinks: SinksSection = SinksSection()
    fleet: FleetSection | None = None
    """monitors that act as one; without it each works alone"""
    metrics: MetricsSection = MetricsSection()
    log: LogSection = LogSection()

    @property
    def declared(self) -> Mapping[str, Rubric]:
        """The rubrics that it declares, and those that plugins bring, compiled when it was read."""
        return self._declared

    def with_declared(self, rubrics: Mapping[str, Rubric]) -> Config:
        """The same configuration, with the rubrics that were compiled from it."""
        self._declared = rubrics
        return self

    @field_validator("rubrics")
    @classmethod
    def _within_scale(cls, rubrics: Mapping[str, RubricSection], info: ValidationInfo) -> Mapping[str, RubricSection]:
        from sidejudge.scoring.rubrics import RUBRICS  # noqa: PLC0415  # only needed once a rubric is named

        for name, section in rubrics.items():
            shipped = RUBRICS.get(name)
            if shipped is not None and section.pass_mark is not None and section.pass_mark > shipped.scale:
                raise ValueError(f"{name}.pass_mark must be at most {shipped.scale:g}, got {section.pass_mark:g}")
            if section.judge_config is not None and name != "agent":
                raise ValueError(f"{name}.judge_config: only agent has one")
            if section.trajectory is not None and name != "trajectory":
                raise ValueError(f"{name}.trajectory: only the rubric trajectory has a budget of its own")
            _check_metrics(name, section, (info.context or {}).get("declared") or {})
        return rubrics

    @field_validator("alerts")
    @classmethod
    def _metrics_exist(cls, alerts: AlertsSection, info: ValidationInfo) -> AlertsSection:
        if alerts.metrics:
            from sidejudge.scoring.rubrics import RUBRICS  # noqa: PLC0415  # only needed once a metric is named

            metric_limits(alerts.metrics, {**RUBRICS, **((info.context or {}).get("declared") or {})})
        return alerts

    @model_validator(mode="after")
    def _declares(self, info: ValidationInfo) -> Config:
        return self.with_declared((info.context or {}).get("declared") or {})  # how long verdicts are kept follows

    @model_validator(mode="after")
    def _addresses_differ(self) -> Config:
        otlp = self.sources.otlp
        listened = {"sources.otlp.http": otlp.http, "sources.otlp.grpc": otlp.grpc, "api.listen": self.api.listen}
        for (one, first), (other, second) in combinations(listened.items(), 2):
            if first is not None and second is not None and first.meets(second):
                raise ValueError(f"{other}: {second} is taken by {one} ({first}); give one of them another port")
        return self

    @model_validator(mode="after")
    def _calls_may_be_kept(self) -> Config:
        judge = self.evaluators.judge
        if judge is not None and judge.keep_calls_bytes is not None and self.api.contents == "never":
            raise ValueError(
                "evaluators.judge.keep_calls_bytes: calls hold contents, which api.contents: never forbids to keep"
            )
        return self

    @model_validator(mode="after")
    def _contents_may_be_kept(self) -> Config:
        kept, at = self.store.keep_contents, "store.keep_contents"
        wanted = (kept.failed is not None and kept.failed.ns > 0) or kept.passed > 0
        if wanted and self.api.contents == "never":
            raise ValueError(f"{at}: api.contents: never forbids to keep contents; leave it out, or allow some callers")
        if kept.failed is not None and kept.failed > self.kept_for:
            raise ValueError(
                f"{at}.failed: contents stay no longer than verdicts ({self.kept_for}); raise store.retention"
            )
        if kept.passed > 0 and kept.failed is not None and not kept.failed.ns:
            raise ValueError(f"{at}.passed: nothing is kept with failed: 0s; leave one of them out")
        return self

    @model_validator(mode="after")
    def _judges_are_there(self) -> Config:
        known = (DEFAULT_JUDGE, *self.evaluators.judges) if self.evaluators.judge is not None else ()
        for name, section in self.rubrics.items():
            named = {"judge": section.judge or ()}
            named |= {f"metric_judges.{metric}": judges for metric, judges in section.metric_judges.items()}
            for key, judges in named.items():
                if absent := [judge for judge in judges if judge not in known]:
                    raise ValueError(f"rubrics.{name}.{key}: evaluators.judges names no judge {absent[0]!r}")
        return self

    @model_validator(mode="after")
    def _labels_are_read(self) -> Config:
        if self.alerts.corrected == "none":
            return self
        if self.sinks.langfuse is None or self.sinks.langfuse.annotations is None:
            raise ValueError("alerts.corrected: no labels are read; add sinks.langfuse.annotations, or take it out")
        return self

    @model_validator(mode="after")
    def _drift_may_keep_contents(self) -> Config:
        if self.evaluators.drift is not None and self.api.contents == "never":
            raise ValueError("evaluators.drift keeps contents, which api.contents rules out; take one of the two out")
        return self

    @model_validator(mode="after")
    def _of_one_kind(self) -> Config:
        of_traces = {name for route in self.routes for name in route.rubrics} | {*self.default_rubrics}
        both = sorted(of_traces & self.session_rubrics)
        if both:
            raise ValueError(f"sessions.routes: {both[0]} judges traces already (routes); use it for one of the two")
        for name in sorted(of_traces | self.session_rubrics):
            judges = self.rubrics[name].judges if name in self.rubrics else None
            if judges == "sessions" and name in of_traces:
                raise ValueError(f"routes: {name} judges sessions; name it in sessions.routes")
            if judges is not None and judges != "sessions" and name in self.session_rubrics:
                raise ValueError(f"sessions.routes: {name} judges {judges}; name it in routes")
        return self

    @model_validator(mode="after")
    def _destinations_differ(self) -> Config:
        sinks = {name for name in type(self.sinks).model_fields if name != "plugins"} | self.sinks.plugins.keys()
        if taken := sorted(sinks & set(names(self.alerts.notify))):
            raise ValueError(f"alerts.notify: {taken[0]} is the name of a sink; give the receiver another one")
        return self

    @model_validator(mode="after")
    def _references_can_be_read(self) -> Config:
        wanted = next((n for n, each in enumerate(self.references) if each.in_langfuse), None)
        if wanted is not None and self.langfuse is None:
            raise ValueError(f"references[{wanted}] is in Langfuse; name it in sources.langfuse or sinks.langfuse")
        return self

    @property
    def langfuse(self) -> LangfuseProject | None:
        """The Langfuse that references are in."""
        return self.sources.langfuse or self.sinks.langfuse

    @property
    def langfuse_projects(self) -> tuple[Access, ...]:
        """Every project of a Langfuse that is configured, to write to and to read from."""
        return tuple(each.access for each in (self.sinks.langfuse, self.sources.langfuse) if each is not None)

    @property
    def revised_within(self) -> Duration | None:
        """How long after its verdict a trace may be revised for a reference, or for a score of others in Langfuse.

        None: references are in traces alone, and no rubric asks for such scores.
        """
        from .rubrics import reported_names  # noqa: PLC0415  # it imports this module

        within = [each.within for each in self.references if each.metadata is None]
        if self.sinks.langfuse is not None and reported_names(self.declared.values()):
            within.append(self.sinks.langfuse.reevaluate_within)
        return max(within, default=None)

    @property
    def kept_for(self) -> Duration:
        """How long verdicts and details are kept: as configured, and as long as they may be revised."""
        longest = self.revised_within if self.langfuse is not None else None
        return max(self.store.retention, longest) if longest is not None else self.store.retention

    @property
    def contents_kept_for(self) -> Duration | None:
        """How long contents of traces that failed are kept after their close; None: not at all."""
        failed = self.store.keep_contents.failed
        if self.api.contents == "never" or (failed is not None and not failed.ns):
            return None
        return self.kept_for if failed is None else failed

    @property
    def contents_max_bytes(self) -> int:
        """How many bytes of contents are kept at most; 0 where none are."""
        if self.contents_kept_for is None:
            return 0
        most, whole = self.store.keep_contents.max_bytes, self.store.max_bytes
        return most if whole is None else min(most, whole // 4)

    @property
    def late_for(self) -> Duration:
        """How long after the close spans make a revision; at least as long as Langfuse lists traces again."""
        source = self.sources.langfuse
        return self.assembly.late if source is None else max(self.assembly.late, source.look_back)

    @property
    def session_rubrics(self) -> frozenset[str]:
        """Rubrics that judge sessions, and no single trace."""
        routes = self.sessions.routes if self.sessions is not None else ()
        return frozenset(name for route in routes for name in route.rubrics)

    @property
    def reference_keys(self) -> tuple[str, ...]:
        """Metadata keys that may hold the expected outcome, in order."""
        return tuple(each.metadata for each in self.references if each.metadata is not None)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the configuration in force, as hex: equal for equal behaviour, whatever its sources."""
        stated = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(stated.encode()).hexdigest()


def _check_metrics(name: str, section: RubricSection, declared: Mapping[str, Rubric]) -> None:
    """Refuse a judge for a metric that the rubric does not have."""
    from sidejudge.scoring.rubrics import RUBRICS  # noqa: PLC0415  # only needed once a rubric is named

    rubric = declared.get(name) or RUBRICS.get(name)
    known = () if rubric is None else [each.metric.id for each in all_criteria(rubric)]
    absent = next((metric for metric in section.metric_judges if metric not in known), None)
    if absent is not None and rubric is not None:
        raise ValueError(f"{name}.metric_judges: there is no metric {absent!r}\x00{','.join(known)}")
