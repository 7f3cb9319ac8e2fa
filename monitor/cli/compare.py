"""``sidejudge compare``: is it worse since a moment, or in one version than in another?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from .ask import ask_for, url_option
from .errors import DATA
from .settings import FiniteRange, format_option, own_name, show_json
from .terminal import in_clusters, number, table, visible

if TYPE_CHECKING:
    from sidejudge.scoring.trace.span import JsonRecord

NOT_KNOWN = 4
"""Exit code where nothing could be compared, as ``status`` has it for too little data."""


@click.command()
@click.option("--since", help="The moment of the change: a time, or how long ago: 2h, 3d. Default: a day ago.")
@click.option("--before", default="7d", show_default=True, help="How far back of that (or of now) verdicts are read.")
@click.option(
    "--by",
    type=click.Choice(["time", "release", "prompt", "model", "rubric_version"]),
    default="time",
    show_default=True,
    help="What distinguishes the sides; release: service.version.",
)
@click.option("--a", "a", help="Version to compare with; without it the one before B.")
@click.option("--b", "b", help="Version that is compared; without it the one that began last.")
@click.option("--service", help="Only this service.")
@click.option("--environment", help="Only this environment.")
@click.option("--rubric", callback=own_name, help="Only this rubric.")
@click.option("--metric", help="The mean of this metric instead of the pass rate, or a percentile: latency_p95.")
@click.option(
    "--cluster",
    type=click.Choice(["session", "user", "none"]),
    default="session",
    show_default=True,
    help="What belongs together.",
)
@click.option(
    "--within",
    type=click.Choice(["name", "none"]),
    default="name",
    show_default=True,
    help="What must be alike to be compared: the trace's name.",
)
@click.option("--confidence", type=FiniteRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True)
@click.option(
    "--margin", type=FiniteRange(min=0), help="Exit with 0 only where it is shown that nothing is worse by this much."
)
@format_option
@url_option
def compare(url: str, form: str, margin: float | None, since: str | None, **wanted: str | float | None) -> int:
    """Compare the verdicts of the running monitor at URL before and after a moment, or of two versions.

    The intervals hold at any look: the command may run after every deployment, or every minute. Exit code 0: nothing is
    proven worse; 1: something is; 4: nothing can be compared, or most traces of a side have no answer. With --margin, 1
    also means: not proven yet.
    """
    query = {name: value for name, value in wanted.items() if value is not None}
    if since is not None:
        query["since"] = _moment(since)
    answer = ask_for(url, "/v1/compare", lambda body: "comparisons" in body, f"?{urlencode(query)}")
    if form == "json":
        show_json(answer)
    else:
        _show(answer)
    return _exit_code(answer, margin)


def _moment(text: str) -> str:
    from sidejudge.monitor.config.units import parse_span

    from .settings import instant_of

    try:
        ns = time.time_ns() - parse_span(text)
    except ValueError:
        ns = instant_of("--since", text)
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat()


def _exit_code(answer: JsonRecord, margin: float | None) -> int:
    known = [each for each in answer["comparisons"] if each["verdict"] is not None]
    if not known:
        return NOT_KNOWN
    from sidejudge.monitor.alerting.comparisons import UNANSWERED

    # One that most got no answer for may be worse, whatever the others are.
    well = NOT_KNOWN if any(UNANSWERED in (each["unavailable"] or "") for each in answer["comparisons"]) else 0
    if margin is None:
        return DATA if any(each["verdict"] == "worse" for each in known) else well
    higher = answer["higher_is_better"]
    return well if all(each["lower"] > -margin if higher else each["upper"] < margin for each in known) else DATA


def _show(answer: JsonRecord) -> None:
    rows: list[Sequence[str]] = []
    for each in answer["comparisons"]:
        if each["verdict"] is not None:
            before, after = each["before"], each["after"]
            rows.append(
                (
                    each["verdict"].replace("_", " "), each["service"], each["environment"], each["rubric"],
                    number(before["mean"]), number(after["mean"]), f"{each['difference']:+.3f}",
                    f"{each['lower']:+.3f}", f"{each['upper']:+.3f}", _counted(before, answer), _counted(after, answer),
                )
            )  # fmt: skip
    head = ("", "service", "environment", "rubric", "before", "after", "difference", "lower", "upper", "of", "and of")
    click.echo(table(head, rows) if rows else "nothing can be compared")
    for each in answer["comparisons"]:
        where = ", ".join(filter(None, (each["service"], each["environment"], each["rubric"])))
        if each["unavailable"] is not None:
            click.echo(visible(f"  {where}: {each['unavailable']}"))
        elif answer["by"] != "time":
            sides = f"{each['before']['label']} and {each['after']['label']}"
            click.echo(visible(f"  {where}: {answer['by']} {sides}"))
        if each["verdict"] is not None:
            unanswered = [each[side].get("unanswered", 0) for side in ("before", "after")]
            if any(unanswered):
                about = "{:,} before and {:,} after".format(*unanswered)
                why = "(an outage, or a spent budget); bounds of pass rates allow that they pass, or fail"
                click.echo(visible(f"  {where}: nobody could be asked about {about} {why}"))
    click.echo()
    from sidejudge.monitor.config.metric_limits import parse_metric

    metric = answer["metric"]
    is_percentile = metric is not None and (parse_metric(metric) or (metric, None))[1] is not None
    what = "pass rate" if metric is None else metric if is_percentile else f"mean of {metric}"
    click.echo(visible(f"{what}; all intervals hold with {answer['confidence'] * 100:.9g}% together, at any look"))
    if answer["capped"]:
        click.echo("there are more verdicts than are read; the oldest are left out. Name a service or a rubric")


def _counted(side: JsonRecord, answer: JsonRecord) -> str:
    return in_clusters(side["n"], None if answer["cluster"] == "none" else side["clusters"], answer["cluster"])
