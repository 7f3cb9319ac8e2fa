"""Reload: read the configuration and the rubric files again, and put what may change into force without a restart.

It happens on a signal, on a request, and, where that is configured, when a file or a prompt has changed. Rubrics,
routes, scenarios and the meanings of attributes (``sources.attributes``) may change. A configuration is valid as a
whole or nothing changes. What is under way ends under the rubrics with which it began; a rubric that is gone stays
known until the process ends, for verdicts by it may still be delivered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Final, TypeAlias

from pydantic import ValidationError

from sidejudge.integrations.store.errors import StoreError
from sidejudge.monitor.api.view import ReloadResult
from sidejudge.monitor.config import Config, ConfigError, Loaded
from sidejudge.monitor.config.alerts import AlertsSection
from sidejudge.monitor.config.judge_choice import judge_sections, model_of_agent
from sidejudge.monitor.config.metric_limits import metric_limits
from sidejudge.monitor.config.rubric_sources import FACT as PROMPTS
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.status.snapshots import PromptSnapshot
from sidejudge.scoring.trace.span import Json

from .app import Monitor

log = logging.getLogger("sidejudge.reload")

SETTLE_S: Final = 1.0
"""How long a changed file is left alone before it is read."""
_TRIES: Final = 3
RELOADED: Final = ("routes", "default_rubrics", "rubrics", "rubric_files", "scenarios")
"""Sections that are put into force; all others need a restart."""


ReadConfig: TypeAlias = Callable[[Loaded], Loaded]
"""Reads the configuration, or raises ``ConfigError``. It gets the reading that is in force."""


class Reload:
    """Reloads one monitor, one reload at a time.

    Args:
        monitor: Where the configuration is put into force.
        loaded: The reading that is in force.
        read: Reads it again.
        remember: Keeps the prompts that were read, as JSON, for a start while Langfuse is away. May raise
            ``StoreError``.
    """

    def __init__(
        self,
        monitor: Monitor,
        loaded: Loaded,
        read: ReadConfig,
        *,
        remember: Callable[[Mapping[str, Json]], Awaitable[None]] | None = None,
    ) -> None:
        self._monitor, self._read, self._remember = monitor, read, remember
        self._remembered: Mapping[str, Json] | None = None
        self._loaded, self._files = loaded, loaded.files
        alerts = loaded.config.alerts
        self._watched_limits = metric_limits(alerts.metrics, configured(loaded.config)) if alerts.metrics else ()
        self._lock = asyncio.Lock()

    async def __call__(self) -> ReloadResult:
        """Read, and put into force what may be."""
        async with self._lock:
            try:
                loaded = await asyncio.to_thread(self._whole)  # compiling a thousand metrics takes a second
            except ConfigError as error:
                self._files = error.files or self._files.stamped_anew()
                return self._refused([str(problem) for problem in error.problems])
            except Exception as error:  # noqa: BLE001  # whatever it is, what runs goes on as it is
                self._files = self._files.stamped_anew()
                return self._refused([str(error) or type(error).__name__])
            self._files = loaded.files
            result = self._take(loaded.config)
            if not result.mistakes:
                self._loaded = loaded
            return result

    async def look_at_files(self) -> ReloadResult | None:
        """Reload if a file has changed since it was last read; None if none has."""
        if not await asyncio.to_thread(lambda: self._files.changed):
            return None
        await asyncio.sleep(SETTLE_S)  # an editor may still be writing
        return await self()

    async def look_at_prompts(self) -> ReloadResult | None:
        """Reload if a prompt in Langfuse has changed; None if none has."""
        await self._remember_prompts()
        changed = await asyncio.to_thread(self._loaded.prompts.changed)
        if not changed:
            return None
        log.info("prompts have changed in Langfuse", extra={"prompts": changed})
        result = await self()
        await self._remember_prompts()
        return result

    def prompts(self) -> list[PromptSnapshot]:
        """Which text of prompt management each question is asked with."""
        return self._loaded.prompts.snapshots()

    async def _remember_prompts(self) -> None:
        read = self._loaded.prompts.to_json()
        if self._remember is None or not read["texts"] or read == self._remembered:
            return
        try:
            await self._remember(read)
        except StoreError as error:
            log.warning("prompts could not be kept; it is tried again", extra={"cause": str(error)})
        else:
            self._remembered = read

    def _whole(self) -> Loaded:
        """Read until no file has changed while it was read, a few times at most: half of a change is none."""
        for _ in range(_TRIES):
            try:
                loaded = self._read(self._loaded)
            except ConfigError as error:
                if error.files is None or not error.files.changed:
                    raise
                continue
            if not loaded.files.changed:
                return loaded
        return self._read(self._loaded)

    def _refused(self, mistakes: list[str]) -> ReloadResult:
        self._monitor.reloaded(successful=False)
        log.error("the configuration was not reloaded, and nothing has changed", extra={"mistakes": mistakes[:20]})
        return ReloadResult(mistakes=tuple(mistakes))

    def _take(self, given: Config) -> ReloadResult:
        running = self._monitor.config
        # What needs a restart stays as it was; the rest is of the new configuration, which was validated as a whole.
        sources = running.sources.model_copy(update={"attributes": given.sources.attributes})
        reloaded = {name: getattr(given, name) for name in RELOADED} | {"sources": sources}
        config = running.model_copy(update=reloaded).with_declared(given.declared)
        # Values are compared, and not their texts, in which one secret is like another.
        restart = tuple(name for name in Config.model_fields if getattr(given, name) != getattr(config, name))
        rubrics = configured(config)
        if unfit := _unfit(config, rubrics, judge_sections(running).keys()):
            return self._refused([f"{unfit}, until a restart; keep what is in force, or restart the monitor"])
        limited = metric_limits(running.alerts.metrics, rubrics) if "alerts" not in restart else ()
        if any(limit not in self._watched_limits for limit in limited):
            restart = (*restart, "alerts.metrics")  # one of its limits concerns a rubric that is new
        known = configured(running)  # without those that were gone: one that is back is new
        changed = {
            name: each for name, each in rubrics.items() if name not in known or known[name].version != each.version
        }
        gone = [name for name in known if name not in rubrics]
        self._monitor.take_config(config, changed)
        self._monitor.reloaded(successful=True)
        result = ReloadResult(changed=(*changed, *gone), restart=restart)
        log.info("the configuration was reloaded", extra={**result.to_json(), "fingerprint": config.fingerprint[:12]})
        return result


def _unfit(config: Config, rubrics: Collection[str], judges: Collection[str]) -> str | None:
    """Why the reloaded sections do not fit the sections that only a restart changes; None if they do.

    Args:
        config: Sections of both kinds.
        rubrics: Names of its rubrics.
        judges: Names of the judges that run.
    """
    known = {"declared": config.declared, "rubrics": tuple(config.declared)}
    try:  # alerts alone may name what is gone: they have nothing to watch then
        Config.model_validate({**dict(config), "alerts": AlertsSection()}, context=known)
    except ValidationError as error:
        return error.errors()[0]["msg"].removeprefix("Value error, ")
    of_sessions = config.sessions.routes if config.sessions is not None else ()
    scenarios = {route.scenario for route in of_sessions if route.scenario is not None}
    for section, named, known_names in (
        ("rubrics", config.session_rubrics, rubrics),
        ("scenarios", scenarios, config.scenarios),
    ):
        if gone := sorted(named.difference(known_names)):
            return f"{section}: {gone[0]} is gone, by which sessions are judged"
    model = model_of_agent(config)
    return None if model is None or model in judges else f"rubrics.agent.judge_config: {model} is not asked"


def reload_by(monitor: Monitor, loaded: Loaded, read: ReadConfig) -> Reload:
    """Let the configuration be read again: on a signal, over HTTP where that is allowed, and when it changes."""
    section = monitor.config.reload
    reload = Reload(monitor, loaded, read, remember=partial(monitor.store.keep_fact, PROMPTS))
    monitor.view.prompts = reload.prompts
    if monitor.config.api.reload:
        monitor.view.reload = reload
    if section.watch:
        monitor.repeat(reload.look_at_files, section.every.seconds)
    monitor.repeat(reload.look_at_prompts, section.prompts.seconds)
    return reload
