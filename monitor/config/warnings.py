"""Warnings: requests of a valid configuration that will not be fulfilled, or not for long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from sidejudge.scoring.case.run_figures import UNITS
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS, SCENARIO_RUBRICS

from . import Config
from .match import MatchSection
from .model import RouteSection
from .rubrics import configured, reached

_PINNED = re.compile(r"\d{4}-?\d{2}-?\d{2}|\d{2}-\d{4}|sha256:[0-9a-f]{8}|[-@]\d{3,4}\b|-v\d+:\d+\b|:[^:/]*\d+b\b")
"""A pinned model: by a date, a digest, a numbered release, or the size of an open model."""
_SCALE_OF_THE_SEED = "LaBSE"
_LANGFUSE_OTLP = "/api/public/otel"
_NAMES = {Method.JUDGE: ("a judge", "evaluators.judge"), Method.EMBEDDING: ("embeddings", "evaluators.embedding")}


def cautions(config: Config) -> Iterator[tuple[str, str]]:
    """(cause, remedy) of each: incomplete verdicts, judges that drift, money without a limit, loose credentials."""
    for at, routes in _routes(config):
        for index, route in enumerate(routes):
            for name in route.rubrics:
                yield from _unanswerable(f"{at}[{index}].rubrics: {name}", name, config)
    for of_kind in (
        _no_scenario, _behind_another, _credentials, _unheard, _unread, _own_telemetry, _closed_lists, _other_scale,
        _never_measured, _not_handed_over,
    ):  # fmt: skip
        yield from of_kind(config)
    judge = config.evaluators.judge
    if judge is None:
        return
    named = [("judge", judge), *((f"judges.{name}", each) for name, each in config.evaluators.judges.items())]
    for at, each in named:
        for key, model in (("model", each.model), *((f"panel[{n}]", model) for n, model in enumerate(each.panel))):
            if not _PINNED.search(model.rpartition("/")[2]):
                cause = f"{model} names no version, so that the provider may change the judge unseen"
                yield f"evaluators.{at}.{key}: {cause}", "name a dated version of the model"
    if judge.budget_usd_per_hour is None and judge.budget_usd_per_day is None:
        yield (
            "evaluators.judge: no budget is set, so that whatever is sampled is judged, whatever it costs",
            "set budget_usd_per_hour or budget_usd_per_day",
        )


def _routes(config: Config) -> Iterator[tuple[str, Sequence[RouteSection]]]:
    yield "routes", config.routes
    if config.sessions is not None:
        yield "sessions.routes", config.sessions.routes


def _not_handed_over(config: Config) -> Iterator[tuple[str, str]]:
    """A handover that nobody would believe."""
    hands_over = config.drain is not None and config.drain.to is not None and config.peers is None
    if hands_over and config.sampling.handover_key is None:
        yield (
            "drain.to: nothing is handed over, for no key proves to the other monitor how traces were drawn",
            "set sampling.handover_key, as ${NAME}, to the same secret in both monitors",
        )


def _no_scenario(config: Config) -> Iterator[tuple[str, str]]:
    """Rubrics that compare a run with a scenario, in routes without one."""
    for index, route in enumerate(config.routes):
        needing = [name for name in route.rubrics if name in SCENARIO_RUBRICS]
        if needing and route.scenario is None:
            cause = f"{needing[0]} compares with a scenario, and the route names none"
            yield (
                f"routes[{index}].rubrics: {cause}: it judges only the traces that bring one",
                f"set routes[{index}].scenario to the name of one in 'scenarios'",
            )


def _behind_another(config: Config) -> Iterator[tuple[str, str]]:
    """Routes that no trace reaches, because an earlier one takes all of their traces."""
    for at, routes in _routes(config):
        for index, route in enumerate(routes):
            earlier = (n for n, each in enumerate(routes[:index]) if each.match in (MatchSection(), route.match))
            if (taken := next(earlier, None)) is not None:
                yield (
                    f"{at}[{index}]: no trace reaches it, for {at}[{taken}] takes all of them before it",
                    f"put it before {at}[{taken}]: the first route that matches wins",
                )


def _other_scale(config: Config) -> Iterator[tuple[str, str]]:
    """Thresholds that were fitted to another model of embeddings."""
    section = config.evaluators.embedding
    if section is not None and section.thresholds is None and not section.model.endswith(_SCALE_OF_THE_SEED):
        cause = f"the thresholds of 0.80 are those of {_SCALE_OF_THE_SEED}, and {section.model} has a scale of its own"
        yield (
            f"evaluators.embedding: {cause}: correct paraphrases may count as different",
            "fit evaluators.embedding.thresholds with 'sidejudge calibrate --embedding PAIRS'",
        )


def _never_measured(config: Config) -> Iterator[tuple[str, str]]:
    """Limits on a metric that no rubric with a route has: their status stays *insufficient data*."""
    routed = reached(config)
    for index, limit in enumerate(config.alerts.metrics):
        of = [limit.rubric] if limit.rubric is not None else list(routed)
        measured = {criterion.metric.id for name in of if name in routed for criterion in routed[name].criteria}
        if limit.measure not in UNITS and limit.measure not in measured:
            where = f"{limit.rubric} has no route" if limit.rubric is not None else "no rubric with a route has it"
            yield (
                f"alerts.metrics[{index}]: {limit.metric} is never measured: {where}",
                "name a rubric of it in a route",
            )


def _closed_lists(config: Config) -> Iterator[tuple[str, str]]:
    """Scenarios that fail a run for any tool or agent beyond their list, though the list's name promises less."""
    for name, scenario in config.scenarios.items():
        if "closed" in scenario:
            continue
        for side in ("tools", "agents"):
            if scenario.get(f"{side}_should_include") and not scenario.get(f"{side}_may_include"):
                yield (
                    f"scenarios.{name}.{side}_should_include closes the list: any other of the {side} fails a run",
                    f"write closed: {{{side}: false}} to allow others, or closed: {{{side}: true}} where that is meant",
                )


def _unread(config: Config) -> Iterator[tuple[str, str]]:
    """References that are not where they are looked for."""
    for index, each in enumerate(config.references):
        if each.file is not None and not each.file.is_file():
            yield (
                f"references[{index}].file: {each.file} is not there, so that nothing is found in it",
                "put it there, or mend the path; it is looked for again every minute",
            )
        if each.metadata is None and config.langfuse is None:
            late = config.assembly.late
            yield (
                f"references[{index}]: what comes later than {late} after a verdict changes nothing: no spans are left",
                "set sources.langfuse or sinks.langfuse where traces go there, or raise assembly.late",
            )


def _credentials(config: Config) -> Iterator[tuple[str, str]]:
    """Credentials that reach the wrong recipient."""
    otlp, forward = config.sources.otlp, config.forward
    for at, section, host in (("sources.otlp", otlp, otlp.http.host), ("api", config.api, config.api.listen.host)):
        if section.auth is not None and section.tls is None and not is_loopback(host):
            yield (
                f"{at}.auth: credentials come in without encryption",
                f"set {at}.tls, or listen on 127.0.0.1 behind something that encrypts",
            )
    if forward is None:
        return
    if forward.authorization is not None and otlp.auth is None and not is_loopback(otlp.http.host):
        yield (
            f"forward.authorization: whoever reaches {otlp.http} sends upstream with these credentials",
            "listen on 127.0.0.1 (sources.otlp.http), or set sources.otlp.auth",
        )
    if otlp.auth is not None and forward.authorization is None:
        yield (
            "sources.otlp.auth: the credentials that senders give here go on to forward.url",
            "set forward.authorization where they are not meant for it",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address at this host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _unheard(config: Config) -> Iterator[tuple[str, str]]:
    """Messages without a receiver, or with broken links."""
    alerts = config.alerts
    readers = [entry for entry in alerts.notify if entry.alertmanager is None]
    if alerts.report is not None and not readers:
        yield (
            "alerts.report: nobody gets it; Alertmanager takes alerts only",
            "add a webhook or slack to alerts.notify, or take the report out",
        )
    for index, entry in enumerate(alerts.notify):
        if entry.webhook is not None and entry.webhook.secret is None and entry.webhook.template is None:
            yield (
                f"alerts.notify[{index}].webhook: without a secret nobody can know that a notice comes from here",
                "set secret, as ${NAME}, where the receiver verifies signatures",
            )
        if alerts.instance is not None and config.fleet is None and entry.alertmanager is None:
            yield (
                f"alerts.notify[{index}]: fits one monitor; each of several sends its own notices, on its own traffic",
                "for a fleet alert by the Prometheus rules, or send to an Alertmanager, which groups by service",
            )
    if alerts.notify and alerts.links.trace is None:
        yield (
            "alerts.links.trace is not set, so that messages name failing traces without a link",
            "set it to the address of a trace's page, with {trace_id} in it",
        )
    if alerts.notify and alerts.links.dashboard is None:
        yield (
            "alerts.links.dashboard is not set, so that messages show no way to the service's numbers",
            "set it to the address of a dashboard, with {service} in it",
        )


def _own_telemetry(config: Config) -> Iterator[tuple[str, str]]:
    """Own traces and events without a receiver, or settings for ones that do not exist."""
    section = config.sinks.otel_events
    if section is None:
        return
    if "logs" in section.signals and section.endpoint.endswith(_LANGFUSE_OTLP):
        yield (
            "sinks.otel_events.signals: Langfuse takes no logs, so that scores sent as events are refused there",
            "set signals: [traces]; sinks.langfuse writes the scores",
        )
    if section.signals == ("traces",) and config.evaluators.judge is None:
        yield (
            "sinks.otel_events.signals: there are no own traces without a judge, and nothing else is sent",
            "add logs to signals, or evaluators.judge, or take the sink out",
        )


def _unanswerable(where: str, name: str, config: Config) -> Iterator[tuple[str, str]]:
    """Weighed metrics of a rubric that no configured evaluator can answer."""
    evaluators = config.evaluators
    sections = {Method.JUDGE: evaluators.judge, Method.EMBEDDING: evaluators.embedding}
    absent = [method for method, section in sections.items() if section is None]
    unanswerable = [
        c.metric for c in configured(config)[name].criteria if c.weight and set(c.metric.methods) <= set(absent)
    ]
    if unanswerable:
        could = [_NAMES[method] for method in absent if any(method in metric.methods for metric in unanswerable)]
        who, keys = " or ".join(who for who, _ in could), " or ".join(key for _, key in could)
        needed = _all([metric.id for metric in unanswerable])
        yield (
            f"{where}: {needed} {who}, which no section configures, so that these verdicts are incomplete",
            f"add {keys}, or take the rubric out of the route, or expect incomplete verdicts",
        )


def only_judged(name: str) -> list[str]:
    """Weighed metrics of a shipped rubric that only a judge can answer."""
    return [c.metric.id for c in RUBRICS[name].criteria if c.weight and tuple(c.metric.methods) == (Method.JUDGE,)]


def _all(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last} need" if others else f"{last} needs"
