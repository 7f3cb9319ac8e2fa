"""``sidejudge learn``: the scenarios that good runs keep to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from sidejudge.monitor.offline.whole_file import write_whole
from sidejudge.scoring.lexical.amount import amount

from .engine import EngineChoice, engine_of, engine_options
from .errors import DATA, CommandError, ending, warn
from .settings import FiniteRange, match_of, runnable, window_of
from .terminal import counted, table, waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sidejudge.monitor.config.match import MatchSection
    from sidejudge.monitor.offline.engine import Engine
    from sidejudge.monitor.offline.learn import Good, RunSource
    from sidejudge.scoring.case.case import Case
    from sidejudge.scoring.learning.contract import Contract
    from sidejudge.scoring.learning.observed_run import ObservedRun
    from sidejudge.scoring.runs.label_line import Subject
    from sidejudge.scoring.trace.span import Json

_SHOWN = 60


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...|STORE|DIR|URI|langfuse")
@click.option("--config", type=click.Path(path_type=Path), help="Configuration that names the Langfuse to read.")
@click.option("--from", "since", metavar="TIME", help="Of langfuse: first start time, 2026-11-01 or …T12:00Z; UTC.")
@click.option("--to", "until", metavar="TIME", help="Of langfuse: up to this start time (default: half an hour ago).")
@click.option("--most", type=click.IntRange(1), default=1000, show_default=True, help="Of langfuse: traces to read.")
@click.option("--match", "where", multiple=True, metavar="KEY=GLOB", help="As a route's match: name=support-*.")
@click.option(
    "--group-by", default="name", show_default=True, metavar="FIELD", help="name, task, service, metadata.KEY."
)
@click.option("--by-request", is_flag=True, help="Within a group, learn apart what is asked for apart.")
@click.option(
    "--good", type=click.Choice(["all", "passed", "labels"]), default="all", show_default=True,
    help="Which runs are good: all, those that pass run_health, or those that labels or a reward mark as good.",
)  # fmt: skip
@click.option("--labels", type=click.Path(exists=True, path_type=Path), help="Labels that people gave (JSON Lines).")
@click.option("--reward", metavar="KEY", help="Metadata key of a reward (1 is good) or a truth value.")
@click.option(
    "--most-false", "--false-violations", "most_false", type=FiniteRange(0, 0.5), default=0.01, show_default=True,
    help="The share of good runs that may fail, at most and with 95 %.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Write the scenarios here (YAML); default: print them.")
@click.option("--against", type=click.Path(exists=True, path_type=Path), help="Show what differs from these scenarios.")
@engine_options
@click.option("--review", is_flag=True, help="Ask line by line whether to keep it.")
def learn(  # noqa: PLR0917  # click passes options by name
    files: tuple[str, ...], config: Path | None, since: str | None, until: str | None, most: int,
    where: tuple[str, ...], group_by: str, by_request: bool,  # noqa: FBT001  # click's signature
    good: str, labels: Path | None, reward: str | None, most_false: float, out: Path | None,
    against: Path | None, review: bool,  # noqa: FBT001  # click's signature
    engine: EngineChoice,
) -> int:  # fmt: skip
    """Learn scenarios from runs.

    FILEs hold cases (JSON Lines, as 'inspect --format json' writes them), recorded OTLP requests (.pb, .json), or are
    the store of a monitor, which may run. DIR is a folder of files, or what sinks.parquet wrote (s3://… too).
    'langfuse' reads traces from the Langfuse of --config. For each group it finds the lines that good runs keep to:
    tools and agents that always run, their order, limits of calls and tokens, the shape of arguments, and the origin of
    their values. A line fails a run only where good runs that had no part in choosing it show, with 95 %, that all such
    lines together fail no more than --most-false of good runs; that takes 309 good runs of a group at 0.01, 69 at 0.05.
    Every other line is written under signs: it shows that a run departs from what most do, and fails none. Exit 1 when
    --against finds differences.

    --workers and --engine have the lines of files of cases read by several processes; what is learned is the same. One
    process learns from a group, because its runs are compared with each other.
    """
    from sidejudge.monitor.config.match import literal
    from sidejudge.monitor.offline.learn import ALL
    from sidejudge.scoring.learning.contract import MIN_RUNS
    from sidejudge.scoring.learning.contract import learn as learned

    source = _source(where=where, group_by=group_by, good=cast("Good", good), labels=labels, reward=reward)
    if files == ("langfuse",):
        runs = list(source.observed(_langfuse(config, since, until, source.match, most)))
    else:
        named, histories = _apart(files)
        _spare(out, *named, *([] if labels is None else [labels]))
        with engine_of(engine) as working:
            runs = _runs(source, named, histories, working)
    if not runs:
        marked = "" if good == "all" else ", and whether it is good"
        raise CommandError(
            f"no run was read of which the calls are known{marked}", "see 'sidejudge inspect' on the files"
        )
    groups: dict[str, list[ObservedRun]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    scenarios: dict[str, dict[str, Json]] = {}
    routes: list[dict[str, Json]] = []
    # The first route that matches wins: that of the rest, which matches everything, comes last.
    for group, own in sorted(groups.items(), key=lambda each: (each[0] == ALL, each[0])):
        elsewhere = frozenset(tool for run in runs if run.group != group for tool in run.tools)
        with waiting(f"learning from {amount(len(own), 'run')} of {group}"):
            contract = learned(group, own, elsewhere=elsewhere, most_false=most_false, by_request=by_request)
        if contract is None:
            click.echo(
                f"{group}: {amount(len(own), 'run')}, too few to learn from; {MIN_RUNS} good ones are needed", err=True
            )
            continue
        if review:
            contract = _reviewed(contract)
        _show(contract)
        scenarios |= contract.scenarios()
        routes += [
            {"match": {**({group_by: literal(group)} if group != ALL else {}), **asked}, "scenario": name}
            for name, asked in contract.routes()
        ]
    if not scenarios:
        raise CommandError("no group has enough good runs", "give more files, or group otherwise with --group-by")
    if against is not None:
        return _compare(against, scenarios)
    _write(scenarios, out, routes)
    return 0


def _spare(out: Path | None, *read: Path) -> None:
    """Refuse to write over a file that is read: ``CommandError``."""
    if out is not None and out.exists() and any(map(out.samefile, read)):
        raise CommandError(f"--out: {out} is a file that is learned from", "name another file")


def _apart(files: tuple[str, ...]) -> tuple[list[Path], tuple[str, ...]]:
    """The files, those of folders too, and the histories: folders with Parquet in them, and object stores."""
    from sidejudge.integrations.history.reading import is_history
    from sidejudge.monitor.offline.init.sample import recordings

    named: list[Path] = []
    histories: list[str] = []
    for file in files:
        path = Path(file)
        if file.startswith(("http://", "https://")):
            raise CommandError(f"{file}: the runs of a monitor are read from its store", "name the file of store.path")
        if path.is_file():
            named.append(path)
        elif path.is_dir() and next(path.rglob("*.parquet"), None) is None:
            if not (found := recordings(path)):
                raise CommandError(f"{file}: holds no cases, requests or history", "name a folder that does")
            named += found
        elif is_history(file):
            histories.append(file)
        else:
            raise CommandError(f"{file}: there is no such file", "name files of cases or requests, or a store")
    return named, tuple(histories)


def _source(*, where: tuple[str, ...], group_by: str, good: Good, labels: Path | None, reward: str | None) -> RunSource:
    from sidejudge.monitor.offline.learn import RunSource

    if good == "labels" and labels is None and reward is None:
        raise CommandError("--good labels: it is unknown which runs are good", "add --labels FILE or --reward KEY")
    return RunSource(
        match=match_of(where, "--match"), group_by=group_by, good=good, reward=reward,
        labels=_labels(labels) if labels is not None else {},
    )  # fmt: skip


def _runs(source: RunSource, files: list[Path], histories: tuple[str, ...], engine: Engine) -> list[ObservedRun]:
    from sidejudge.integrations.history.reading import HistoryError
    from sidejudge.integrations.otlp.wire.recording import RecordingError
    from sidejudge.integrations.store.errors import StoreError
    from sidejudge.monitor.offline.score.case_lines import TableError

    with (
        ending(StoreError, remedy="name the file of store.path"),
        ending(HistoryError, remedy="name what sinks.parquet.path names, and check its credentials"),
        ending(RecordingError, TableError, remedy="give files of OTLP export requests or of cases"),
    ):
        return list(counted(source.read(files, warn, histories, engine), "runs read"))


def _langfuse(path: Path | None, since: str | None, until: str | None, wanted: MatchSection, most: int) -> list[Case]:
    """The cases of the Langfuse that a configuration names."""
    import asyncio

    from sidejudge.integrations.langfuse.errors import LangfuseError
    from sidejudge.monitor.offline.learn import langfuse_cases

    if path is None or since is None:
        raise CommandError("langfuse: --config and --from are missing", "name the configuration and the first time")
    settings = runnable(path).config
    project = settings.langfuse
    if project is None:
        raise CommandError(f"{path}: names no Langfuse", "add sources.langfuse or sinks.langfuse")
    window = window_of(since, until)
    failing = ending(LangfuseError, naming="Langfuse: ", remedy="see 'sidejudge doctor'", code=DATA)
    with failing, waiting("reading traces of Langfuse"):
        return asyncio.run(langfuse_cases(settings, project, window, wanted, most=most, complain=warn))


def _labels(path: Path) -> dict[Subject, bool]:
    """Whether a run is good: whether all labels on whether it passes, by any rubric and person, pass it."""
    from sidejudge.monitor.offline.score.case_lines import json_of, lines
    from sidejudge.scoring.runs.label_line import PASS, LabelLineError, read_label

    latest: dict[tuple[Subject, str, str], bool] = {}
    with path.open("rb") as file:
        for line in lines(file):
            try:
                label = read_label(json_of(line, LabelLineError))
            except LabelLineError as error:
                raise CommandError(f"{path}: line {line.number}: {error}", "see the format of labels") from error
            if label.metric == PASS:
                latest[label.subject, label.rubric, label.by] = label.stated == 1
    found: dict[Subject, bool] = {}
    for (subject, _, _), passes in latest.items():
        found[subject] = passes and found.get(subject, True)
    return found


def _show(contract: Contract) -> None:
    """The lines with their evidence, and the expected effect of the whole."""
    rows = [
        [
            "fails" if learned.fails else "sign", task.asked or "", learned.line.kind,
            _short(learned.line.about, learned.line.value), str(learned.line.support),
            "" if learned.broken is None else str(learned.broken),
            f"{learned.caught} of {learned.bad}" if learned.bad else "",
        ]
        for task in contract.tasks
        for learned in task.lines
    ]  # fmt: skip
    click.echo(f"{contract.group}: {amount(contract.runs, 'good run')}, {amount(len(rows), 'line')}", err=True)
    heads = ["", "asked", "line", "about", "runs", "judges that break it", "bad runs that break it"]
    shown = [n for n in range(len(heads)) if n not in (1, 5, 6) or any(row[n] for row in rows)]
    click.echo(table([heads[n] for n in shown], [[row[n] for n in shown] for row in rows]), err=True)
    click.echo(contract.promise(), err=True)
    if contract.caught is not None and contract.noticed is not None:
        click.echo(f"of the bad runs {contract.caught:.0%} fail, {contract.noticed:.0%} fail or show a sign", err=True)
    if contract.more_runs is None and contract.most_false > 0:
        click.echo("the signs are broken by more good runs than may fail: more runs do not change that", err=True)
    elif contract.more_runs:
        click.echo(
            f"with about {amount(contract.more_runs, 'good run')} more, signs could fail runs (at "
            f"{contract.most_false:.3g})",
            err=True,
        )


def _short(about: tuple[str, ...], value: Json) -> str:
    named = " → ".join(about)
    shown = named if isinstance(value, dict | list) and named else f"{named}: {value}" if named else str(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


def _reviewed(contract: Contract) -> Contract:
    from dataclasses import replace

    tasks = tuple(
        replace(
            task,
            lines=tuple(
                learned
                for learned in task.lines
                if click.confirm(f"{learned.line.kind}: {_short(learned.line.about, learned.line.value)}", default=True)
            ),
        )
        for task in contract.tasks
    )
    return replace(contract, tasks=tasks)


def _watching(file: str, routes: Sequence[Mapping[str, Json]]) -> str:
    """The routes that compare each run with the scenario of its group, besides judging it by run_health."""
    from sidejudge.dashboards.yaml_text import readable
    from sidejudge.scoring.rubrics import SCENARIO_RUBRICS

    rubrics = ["run_health", *SCENARIO_RUBRICS]
    stated = [
        {**({"match": route["match"]} if route["match"] else {}), "rubrics": [*rubrics], "scenario": route["scenario"]}
        for route in routes
    ]
    return readable({"scenarios": file, "routes": stated}, width=120)


def _write(scenarios: Mapping[str, object], out: Path | None, routes: Sequence[Mapping[str, Json]]) -> None:
    from sidejudge.dashboards.yaml_text import readable

    text = readable(dict(scenarios), width=120)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_whole(out, text)
        click.echo(f"written to {out}; to watch live what departs from it, add to the configuration:", err=True)
        click.echo(_watching(out.name, routes), err=True, nl=False)


def _compare(against: Path, scenarios: Mapping[str, Mapping[str, Json]]) -> int:
    import yaml

    from sidejudge.monitor.offline.learn import differences

    remedy = "name a file that 'sidejudge learn --out' wrote"
    with ending(OSError, ValueError, yaml.YAMLError, naming=f"{against}: ", remedy=remedy):
        before = yaml.safe_load(against.read_text(encoding="utf-8"))
    if not isinstance(before, dict):
        raise CommandError(f"{against}: holds no scenarios", remedy)
    differs = False
    for group, now in scenarios.items():
        held = before.get(group)
        found = differences(held if isinstance(held, dict) else {}, now)
        differs = differs or bool(found)
        for sign, lines in (("+", found.new), ("-", found.gone), ("~", found.changed)):
            for line in lines:
                click.echo(f"{sign} {group}: {line}")
    for group in before.keys() - scenarios.keys():
        click.echo(f"- {group}: no runs any more")
        differs = True
    return DATA if differs else 0
