"""One monitor: its parts are started in order, take a new configuration, and are ended in order.

Start: the store, what it still holds, the listeners; then the monitor is ready. End: stop listening, send the last
responses, close the store. A trace that is not judged by then is in the store and is judged after the next start.
Periodic work goes by the loop's clock, and can be stopped in order while it runs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from sidejudge.integrations.dialects import map_attributes
from sidejudge.integrations.peers import PATH as PEERS
from sidejudge.integrations.prometheus.collect import Snapshot
from sidejudge.integrations.store.sqlite import StoreError
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.failures import REFRESH_S as FAILURES_S
from sidejudge.monitor.api.access import AccessRules
from sidejudge.monitor.api.contents_token import ContentsToken
from sidejudge.monitor.api.door import door
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.judge_choice import judges_named
from sidejudge.monitor.config.rubrics import configured, reached, reported_names, rubrics_of
from sidejudge.monitor.deliver.kept_contents import EVERY_S as CONTENTS_S
from sidejudge.monitor.deliver.metrics import MetricsPush
from sidejudge.monitor.evaluate.references.lookup import REFRESH_S
from sidejudge.monitor.ingest.http_connection import reader_connections
from sidejudge.monitor.ingest.server import AddressError, HttpServer, address, bind
from sidejudge.monitor.revise.schedule import EVERY_S as ROUND_S
from sidejudge.monitor.route.router import router_of
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.verdict.rubric import Rubric

from .builders import conversations
from .handover import Handover, unjudged
from .metric_labels import violations
from .parts import DRIFT, MonitorParts
from .queries import MonitorQueries

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class Periodic:
    """Work in rounds, one at a time, by the loop's clock: where the machine's is set back, no round waits for it."""

    def __init__(self, work: Callable[[], Awaitable[object]], every_s: float, first_s: float = 0.0) -> None:
        self.work, self.every_s = work, every_s
        self._rounds = asyncio.create_task(self._go_on(first_s))

    async def stop(self) -> None:
        """Cancel the running round; no other begins."""
        self._rounds.cancel()
        await asyncio.gather(self._rounds, return_exceptions=True)

    async def _go_on(self, first_s: float) -> None:
        now, task = asyncio.get_running_loop().time, asyncio.current_task()
        due = now() + first_s
        while task is not None and not task.cancelling():
            await asyncio.sleep(due - now())
            try:
                await self.work()
            except asyncio.CancelledError:
                pass  # of all rounds, or only of what this one waited for
            except Exception:
                log.exception("a periodic round failed; the next one begins in time")
            due += self.every_s * max(1, ceil((now() - due) / self.every_s))


log = logging.getLogger("sidejudge")

NOTIFY_TICK_S = 30
"""How often reminders, digests and the report are checked: short compared with Alertmanager's refresh."""
DRIFT_S = 60.0
"""How often it is looked whether the judge's sample is to be sent again."""
_REQUEST_S = 4.0
"""How long a request that hands traces over may take, at most; a quarter of a short ``drain.timeout``."""
_LEAST_S = 2.0
"""And at least."""


class Monitor(MonitorParts):
    """One monitor: a store, a pipeline and two listeners. ``start`` makes it ready, ``stop`` ends it without loss.

    ``at_rest`` is called several times a second, in the event loop, while nothing is judged and no request goes on.
    """

    def __init__(
        self, config: Config, *, clock_ns: Callable[[], int] = time.time_ns, at_rest: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(config, clock_ns=clock_ns, at_rest=at_rest)
        self.view = MonitorQueries(self)
        self.exporter.watch(self.view.snapshot)
        self._repeated: list[Periodic] = []
        self._servers: list[HttpServer] = []
        self._warming: asyncio.Task[None] | None = None
        self.is_restored = False
        """Whether what the last run left is known: before, nothing is shown, and nothing written over it."""
        self.handed_over: int | None = None
        """Traces that a drain passed on; None where nothing was drained, and once the process has stopped."""
        self._metrics_push: MetricsPush | None = None

    def snapshot(self, services: Iterable[ServiceStatus] | None = None) -> Snapshot:
        """The gauges of this moment; ``services`` are their statuses where they are known already."""
        return self.view.snapshot(services)

    async def _restore(self) -> None:
        """Restore the earlier state, labels before the statuses that depend on them."""
        if self.annotating:
            self.annotating.restore()
        await self.former_draw.restore()
        await self.verdicts.restore(self.clock_ns())
        await asyncio.to_thread(self.awaited.restore, self.store, self.clock_ns(), self.watch.waited)
        self.commit.restore(self.clock_ns())
        self.baselines.restore()
        if self.drift is not None:
            self.drift.restore()
        else:
            sample = self.store.kept.room(DRIFT)  # of a configuration that had the watch
            await sample.change(dict.fromkeys(sample.all()))
        self.is_restored = True

    async def start(self) -> Mapping[str, str]:
        """Restore the earlier state, listen, and return the addresses: ``otlp``, ``api``, and ``page`` with a token."""
        await self.sinks.start()
        section = self.config.api
        token = ContentsToken.beside(self.config.store.path) if section.contents == "loopback" else None
        rules = AccessRules.of(section, token)
        api = door(self.view, partial(self._api, rules), rules.credentials, lambda: self.is_restored)
        api_socket = bind(str(section.listen), "api.listen")
        self._servers = [HttpServer(api, api_socket, section.tls, reader_connections())]
        await self._servers[0].start()  # probes are answered, however much there is to read
        await self._restore()
        resumed = self.intake.restore()
        otlp_socket = bind(str(self.config.sources.otlp.http), "sources.otlp.http")
        try:
            more = await self.listeners.start()
        except AddressError:
            otlp_socket.close()
            raise
        self._servers.insert(0, self.listeners.http_server(api, otlp_socket, whole=self._one_audience))
        await self._servers[0].start()
        self.judging.start()
        self._warming = asyncio.create_task(self.backends.warm()) if self.backends.others else None
        if self.annotating:
            self.annotating.start()
        for work, seconds in (
            (self.retention.purge, 60.0), (self._remember, 60.0), (self.retention.relieve, 2.0),
            (self._watch_alerts, self.config.alerts.look.seconds), (self.notifications.tick, NOTIFY_TICK_S),
            (self.sinks.look, 60.0), (self._log_news, 30.0),
        ):  # fmt: skip
            self.repeat(work, seconds, first_s=seconds)
        await self.notifications.start()
        await self._watch_alerts()
        await self.notifications.tick()
        self._repeat_all()
        if self.fleet is not None:
            await self.fleet.start()
        if self.peers is not None:
            self.listeners.also[PEERS] = self.peers.app(self.receiver)
            self.traffic.others = [*self.traffic.others, self.peers.anomalies]
            await self.peers.start(address(otlp_socket, self.listeners.scheme))
        self.view.is_started = self.view.is_ready = True
        addresses = {
            "otlp": address(otlp_socket, self.listeners.scheme),
            "api": address(api_socket, "https" if section.tls else "http"),
            **more,
        }
        log.info("ready", extra={**addresses, "resumed_traces": resumed, "sampling_rate": self.sampling_rate()})
        return {**addresses, "page": token.link(addresses["api"])} if token is not None else addresses

    def _api(self, rules: AccessRules) -> ASGIApp:
        from sidejudge.monitor.api.routes import create_app  # noqa: PLC0415  # FastAPI, which many monitors never need

        return create_app(self.view, version=self.version, rules=rules)

    def _repeat_all(self) -> None:
        """Periodic reading, most of it from other systems."""
        if self.fleet is not None and self.fleet_status is not None:
            self.repeat(self.fleet_status.round, self.fleet.every_s)
        if (pushed := self.config.sinks.otel_metrics) is not None:
            self._metrics_push = MetricsPush(pushed, self.exporter.metrics, self.clock_ns)
            self.repeat(self._metrics_push.push, self._metrics_push.every_s)
        if self.drift is not None and self.backends.judge is not None:
            self.repeat(partial(self.drift.round, self.backends.judge), DRIFT_S)
        self.repeat(self.failures.refresh, FAILURES_S)
        if self.contents is not None:
            self.repeat(self.contents.write, CONTENTS_S)
        if self.references is not None:
            sink = self.config.sinks.langfuse
            read = sink.annotations if sink is not None else None
            self.repeat(self.references.refresh, min(REFRESH_S, read.every.seconds if read is not None else REFRESH_S))
        if self.pull is not None:
            self.repeat(self.pull.poll, self.pull.poll_s)
        if self.revisions is not None:
            self.repeat(self.revisions.round, ROUND_S)

    def repeat(self, work: Callable[[], Awaitable[object]], every_s: float, *, first_s: float = 0.0) -> None:
        """From ``first_s`` seconds on, regularly; a round that takes longer has the next ones left out."""
        self._repeated.append(Periodic(work, every_s, first_s))

    def take_config(self, config: Config, changed: Mapping[str, Rubric]) -> None:
        """Put a reloaded configuration into force; ``changed`` are its rubrics that are new or have another version.

        Open work ends under the rubrics with which it began. A window holds verdicts by only one version, and by the
        same judges. A fleet watches verdicts by all judges together, for its monitors are restarted one by one.
        """
        judges = judges_named(config, configured(config).values())
        moved = self.watch.take_judges(judges) if self.fleet is None else []
        for name in {*changed, *moved}:
            if name in self.rubrics:
                self.windows.forget(name)
        removed = configured(self.config).keys() - configured(config).keys()
        for name in removed:
            self.windows.remove_rubric(name)
            self._watched.pop(name, None)
        self.rubrics |= changed
        self._watched |= {name: WatchedWindow.of(rubric) for name, rubric in changed.items()}
        before, now = reached(self.config), reached(config)
        watched = [rubric for name, rubric in now.items() if name in changed or name not in before]
        self.exporter.take_rubrics(
            now.values(), config.fingerprint[:12], partial(rubrics_of, config), violations=violations(config)
        )
        if (changed or removed) and self.fleet_status is not None:
            self.fleet_status.status.restart()
        if self.sinks.langfuse is not None:
            self.sinks.langfuse.take_rubrics(changed.values())
        if self.annotating is not None:
            self.annotating.take_rubrics({rubric.id: rubric for rubric in watched}, judges)
        if self.references is not None:
            self.references.follow(reported_names(now.values()))
        self.retention.config = config
        map_attributes(config.sources.attributes)
        self.router.take_routes_of(router_of(config))
        of_sessions, turns = self.pipeline.stages.conversations, conversations(config)
        if of_sessions is not None and turns is not None:  # their routes as before, with scenarios of today
            of_sessions.router.take_routes_of(turns.router)
        self.silent_routes.take_routes(config.routes)
        self.config = config
        self.cascade_learning.forget({*changed, *moved})
        self._learn_cascades()
        self.view.rubrics = tuple(configured(config))

    def reloaded(self, *, successful: bool) -> None:
        """Record how the latest reload of the configuration went."""
        self.exporter.config_reloaded(successful=successful)

    @property
    def _one_audience(self) -> bool:
        """Whether both addresses are open to the same callers: then the OTLP address may answer the API as well."""
        otlp, api = self.config.sources.otlp, self.config.api
        return otlp.http.host == api.listen.host and otlp.tls == api.tls

    def begin_drain(self) -> None:
        """Report that this process is not ready any more, and close open traces from now on."""
        self.view.is_ready = False
        self.judging.draining = True
        self.judging.hands_over = self.config.drain is not None and self.config.drain.to is not None
        self.pipeline.judge_queue.progress.set()

    def requests(self) -> int:
        """How many requests have come since the start."""
        return self.intake.counts.requests

    def refuse(self) -> None:
        """Take in no further request."""
        self.receiver.accepting = False

    def unfinished(self) -> int:
        """Traces and conversations that are open, wait or are being judged, but for torn ones that are handed over."""
        queue = self.pipeline.judge_queue
        sessions = self.sessions.open_sessions if self.sessions is not None else 0
        waiting = self._waiting() + queue.under_way + queue.waiting + len(queue.results)
        torn = self.assembler.torn_traces if self.judging.hands_over else -self._held_back()
        return self.assembler.open_traces - torn + sessions + waiting or int(not self.judging.idle)

    def torn(self) -> int:
        """Open traces that lack spans, and closed ones that may."""
        return self.assembler.torn_traces + self._held_back()

    def _held_back(self) -> int:
        return self.peers.joining.waiting if self.peers is not None else 0

    def undelivered(self) -> int:
        """Scores, verdicts and notices that wait for their destinations."""
        return self.sinks.undelivered() + sum(each.waiting for each in self.notifications.exports())

    async def report(self) -> None:
        """Look at statuses and alerts once more, and queue their notices."""
        await self._watch_alerts()
        await self.notifications.tick()
        await self.notifications.end()

    async def stop_judging(self) -> None:
        """Stop judging; results so far are committed."""
        if not await self.judging.stop():
            return
        try:
            await self.pipeline.close()
        except StoreError as error:
            log.warning("could not write verdicts; they are reached again", extra={"cause": str(error)})

    async def hand_over(self, until_s: float) -> int:
        """Hand over unjudged traces until this time of the loop, in s; return their number."""
        section = self.config.drain
        if section is None or section.to is None:
            return 0
        if not self.keys.is_shared and self.peers is None:
            log.warning("traces are not handed over: sampling.handover_key is not set", extra={"to": section.to})
            return 0
        timeout_s = max(_LEAST_S, min(_REQUEST_S, section.timeout.seconds / 4))
        handover = Handover(
            section.to, section.sent_headers, timeout_s, self.pipeline.end_unread, self.keys,
            hash_key=self.config.sampling.hash_key,
        )  # fmt: skip
        return await handover.run(unjudged(self.store.recover()), until_s)

    async def _leave_fleet(self) -> None:
        if self.fleet_status is not None:
            await self.fleet_status.end()
        if self.fleet is not None:
            await self.fleet.stop()

    async def stop(self) -> None:
        """End in order. Unjudged traces stay open in the store."""
        self.view.is_ready = False
        self.receiver.accepting = False
        if self.peers is not None:
            await self.peers.stop()
        await asyncio.gather(*(each.stop() for each in self._repeated))
        await asyncio.gather(*(server.stop() for server in self._servers), self.listeners.stop())
        await self.listeners.close()
        await self.stop_judging()
        await self._leave_fleet()
        if self.revisions is not None:
            await self.revisions.close()
        if self._warming:
            await asyncio.gather(self._warming, return_exceptions=True)
        await self.backends.close()
        if self.annotating:
            await self.annotating.stop()
        await self.sinks.stop()
        await self.langfuse.close()
        await self.notifications.close()
        if self._metrics_push is not None:
            await self._metrics_push.push()
            self._metrics_push = None
        if self.is_restored:
            try:
                await self.schedule.remember()
            except StoreError as error:
                log.warning("could not remember alerts", extra={"cause": str(error)})
            await self._remember()
        left: dict[str, object] = {"open_traces": self.outcomes.open}
        lost: dict[str, int] = {}
        handed_over, self.handed_over = self.handed_over, None
        if handed_over is not None:
            lost = {"lost_traces": self.outcomes.open, "lost_deliveries": self.undelivered()}
            left |= {"handed_over_traces": handed_over, **lost}
        self.store.close()
        log.log(logging.WARNING if any(lost.values()) else logging.INFO, "stopped", extra=left)

    async def _log_news(self) -> None:
        self.traffic.log_news()

    async def _watch_alerts(self) -> None:
        """Statuses and alerts; without the store there is no look, and the earlier ones stay."""
        try:
            await self.schedule.look(self.clock_ns())
        except StoreError as error:
            log.warning("could not store the alerts; the next look reports them", extra={"cause": str(error)})

    async def _remember(self) -> None:
        """What is usual, and how traces are drawn, for the next start."""
        try:
            await self.baselines.remember()
            await self.former_draw.note()
        except StoreError as error:
            log.warning("could not store what is usual and how traces are drawn", extra={"cause": str(error)})
