"""``sidejudge simulate``: alerts that the past would have raised under a configuration, and the cost of judging it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .engine import EngineChoice, engine_of, engine_options
from .errors import DATA, CommandError, ending, warn
from .settings import duration_of, loaded, show_json
from .terminal import progress, share, table, visible

if TYPE_CHECKING:
    from sidejudge.monitor.config import Config
    from sidejudge.monitor.offline.engine import Engine
    from sidejudge.monitor.offline.simulate import FiledPast, HistoryPast, Judging, Past, Replayed
    from sidejudge.scoring.alerts.event import Incident


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--since", "since", default="7d", show_default=True, metavar="DURATION", help="How far back: 12h, 7d.")
@click.option("--store", type=click.Path(path_type=Path), help="This store instead of store.path of the configuration.")
@click.option(
    "--verdicts", metavar="FILE|DIR|URI", help="Verdicts (JSON Lines), or what sinks.parquet wrote, instead of a store."
)
@engine_options
@click.option("--json", "as_json", is_flag=True, help="The same as JSON, times in ns since the epoch.")
def simulate(
    *, config: Path | None, since: str, store: Path | None, verdicts: str | None, as_json: bool, engine: EngineChoice
) -> int:
    """Show which alerts the past would have raised under CONFIG, and what the judge cost.

    Existing verdicts are replayed by the rules of a monitor under CONFIG: its thresholds, limits of metrics, windows,
    guards, hysteresis and budgets. Limits of latency, cost and tokens are left out, for no verdict holds these. Traces
    are not judged or sampled again, so other routes or rates in CONFIG have no effect. A store is replayed until now, a
    file until its last verdict. Only those of the monitor's own troubles are shown that verdicts record. Exit 1 when
    lines of --verdicts were no verdicts.

    --workers and --engine have the lines of a file of --verdicts checked by several processes; what is shown is the
    same. One process replays them, because each look depends on all earlier ones.
    """
    from sidejudge.integrations.history.reading import HistoryError
    from sidejudge.integrations.store.errors import StoreError
    from sidejudge.monitor.offline.simulate import StoredPast

    if store is not None and verdicts is not None:
        raise CommandError("--store and --verdicts: one past at a time", "name one of them")
    settings = loaded(config).config
    length_ns = duration_of("--since", since, "7d").ns
    if length_ns == 0:
        raise CommandError("--since: must be above 0", "for example --since 7d")
    bad_lines = 0
    past: Past
    store_remedy = "name the file of a monitor's store with --store, or --verdicts"
    place_remedy = "name what sinks.parquet.path names, and check its credentials"
    with ending(StoreError, remedy=store_remedy), ending(HistoryError, remedy=place_remedy):
        if verdicts is not None:
            with engine_of(engine) as working:
                past = filed = _filed(verdicts, working)
            bad_lines, end_ns = filed.bad_lines, filed.latest_ns or 0
        else:
            past, end_ns = StoredPast(store or settings.store.path), time.time_ns()
        if past.latest_ns is None:
            place = store or settings.store.path if verdicts is None else verdicts
            raise CommandError(f"{place}: holds no verdict", "name another past with --store or --verdicts")
        if past.latest_ns <= end_ns - length_ns:
            latest = f"the latest is of {_moment(past.latest_ns)}"
            raise CommandError(f"--since: no verdict of the last {since}: {latest}", "look further back with --since")
        replayed = _played(settings, past, end_ns - length_ns, end_ns)
    for rubric, versions in replayed.versions.items():
        if len(versions) > 1:
            named = ", ".join(versions)
            warn(f"verdicts of several versions of {rubric} are replayed as one, where a monitor begins anew: {named}")
    if as_json:
        show_json(_record(replayed))
    else:
        _show(replayed, settings)
    return DATA if bad_lines else 0


def _filed(verdicts: str, engine: Engine) -> FiledPast | HistoryPast:
    from sidejudge.integrations.history.reading import is_history
    from sidejudge.monitor.offline.simulate import FiledPast, HistoryPast

    if is_history(verdicts):
        return HistoryPast(verdicts, lambda text: click.echo(f"{verdicts}, {text}", err=True))
    path = Path(verdicts)
    if not path.is_file():
        cause = "is no regular file" if path.exists() else "does not exist"
        raise CommandError(f"--verdicts: {path} {cause}", "name what 'score', sinks.jsonl or sinks.parquet wrote")
    with progress(path.stat().st_size, "bytes") as shown:
        return FiledPast(
            path, lambda text: shown.report(f"{path}, {text}"), lambda read: shown.step(read, None), engine
        )


def _played(settings: Config, past: Past, begin_ns: int, end_ns: int) -> Replayed:
    from sidejudge.monitor.alerting.build import declaration
    from sidejudge.monitor.alerting.details import WatchedWindow
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.monitor.offline.simulate import Costs, Replay
    from sidejudge.scoring.status.metric_status import APPLICATION

    declared, judge = declaration(settings), settings.evaluators.judge
    costs = Costs(
        rate=settings.sampling.fixed_rate,
        hour_usd=judge.budget_usd_per_hour if judge else None,
        day_usd=judge.budget_usd_per_day if judge else None,
    )
    if left_out := [limit.name for limit in declared.metrics if limit.rubric == APPLICATION]:
        warn(f"alerts.metrics: {', '.join(left_out)}: no verdict holds such figures, so these limits are left out")
    replay = Replay(declared, {name: WatchedWindow.of(rubric) for name, rubric in configured(settings).items()}, costs)
    early_ns = begin_ns - replay.warm_up_ns(declared)
    with progress((end_ns - early_ns) // declared.look_ns, "looks") as shown:
        return replay.play(past.since(early_ns), begin_ns, end_ns, lambda done: shown.step(done, None))


def _show(replayed: Replayed, settings: Config) -> None:
    from sidejudge.monitor.config.rubrics import configured
    from sidejudge.scoring.status.status import Status

    head = ("alert", "severity", "where", "began", "lasted", "raised on")
    rows = [
        (
            each.condition, each.severity.value + (" (muted)" if each.muted else ""),
            ", ".join(value for _, value in each.labels) or "the monitor", _moment(each.began_ns),
            _lasted(each, replayed.end_ns), each.stated,
        )
        for each in replayed.incidents
    ]  # fmt: skip
    click.echo(f"from {_moment(replayed.begin_ns)} to {_moment(replayed.end_ns)}, times in UTC\n")
    click.echo(table(head, rows) if rows else "no alert")
    click.echo()
    courses = [
        (
            each.key.service, each.key.environment, each.key.rubric, str(each.verdicts),
            *(share(each.shares[status]) for status in Status),
        )
        for each in replayed.courses
    ]  # fmt: skip
    click.echo(table(("service", "environment", "rubric", "verdicts", *(s.value for s in Status)), courses))
    judged = {each.key.rubric for each in replayed.courses if each.verdicts}
    routed = {name for route in settings.routes for name in route.rubrics} or set(configured(settings))
    if settings.routes and routed - judged:
        names = ", ".join(sorted(routed - judged))
        click.echo(f"\nrouted now, and without a verdict in this past, so nothing can be shown: {names}")
    click.echo("\n" + visible(_bill(replayed.judging, settings)))


def _bill(judging: Judging, settings: Config) -> str:
    if judging.paid_usd is None or judging.whole_usd is None or judging.at_rate_usd is None:
        return f"judge: no cost is stated by {judging.verdicts} verdicts"
    bill = (
        f"judge: ${judging.paid_usd:.2f} for {judging.judged} of {judging.verdicts} verdicts, "
        f"by {', '.join(judging.models)}; about ${judging.whole_usd:.2f} for all traffic, "
        f"${judging.at_rate_usd:.2f} at the base rate {judging.rate:g} "
        "(what rules keep comes on top)"
    )
    judge = settings.evaluators.judge
    for period, dearest, budget in (
        ("hour", judging.dearest_hour_usd, judge.budget_usd_per_hour if judge else None),
        ("day", judging.dearest_day_usd, judge.budget_usd_per_day if judge else None),
    ):
        of = f" of ${budget:.2f}" if budget is not None else ""
        bill += f"; dearest {period} ${dearest:.2f}{of}" if dearest is not None else ""
    return bill


def _lasted(incident: Incident, end_ns: int) -> str:
    from sidejudge.monitor.config.units import Duration

    until_ns = end_ns if incident.ended_ns is None else incident.ended_ns
    seconds = (until_ns - incident.began_ns) // 10**9
    text = str(Duration((seconds if seconds < 120 else seconds // 60 * 60) * 10**9))
    return text + (" so far" if incident.ended_ns is None else "") + (", silence in it" if incident.silent else "")


def _record(replayed: Replayed) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "begin_ns": replayed.begin_ns,
        "end_ns": replayed.end_ns,
        "alerts": [each.to_json() for each in replayed.incidents],
        "courses": [
            {**each.key._asdict(), "verdicts": each.verdicts, "looks": each.looks, "shares": dict(each.shares)}
            for each in replayed.courses
        ],
        "judge": asdict(replayed.judging),
    }


def _moment(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")
