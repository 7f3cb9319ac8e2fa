"""``sidejudge status``: the status of a running monitor."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from sidejudge.scoring.lexical.amount import amount

from .ask import ask_for, check_url, url_option
from .errors import CommandError
from .settings import FiniteRange, format_option, show_json
from .terminal import in_clusters, number, screen, table, visible

if TYPE_CHECKING:
    from sidejudge.scoring.trace.span import JsonRecord

EXIT_CODES: Mapping[str, int] = {"healthy": 0, "warning": 1, "critical": 3, "insufficient_data": 4, "no_data": 4}
"""By the overall status; 2 is the call that is wrong, here as everywhere, or a monitor that does not answer."""


@click.command()
@click.argument("address", metavar="[URL]", required=False)
@format_option
@click.option("--watch", is_flag=True, help="Show it again every few seconds, until Ctrl-C.")
@click.option("--every", type=FiniteRange(min=0.5), default=5.0, show_default=True, help="Seconds, with --watch.")
@click.option("--any-state", is_flag=True, help="Exit with 0 whenever a monitor answers, whatever the statuses are.")
@url_option
def status(  # click passes options by name
    address: str | None, url: str, form: str, every: float, *, watch: bool, any_state: bool
) -> int:
    """Show, for each service and rubric of the monitor at URL, whether it is healthy, and on what evidence.

    The exit code is for scripts. 0: healthy; 1: the worst known status is a warning; 3: it is critical; 4: there is too
    little data on every service, or no data comes any more; 2: no monitor answers, or the call is wrong.
    """
    url = address or url
    if not watch:
        return _once(url, form, any_state=any_state)
    check_url(url)
    while True:
        click.clear()  # nothing where nobody looks
        click.echo(f"{url} at {time.strftime('%H:%M:%S')}, every {every:g} s")
        try:
            _once(url, form, any_state=any_state)
        except CommandError as error:  # a monitor that restarts is waited for
            click.echo(f"{error.cause}; waiting for it")
        time.sleep(every)


def _once(url: str, form: str, *, any_state: bool) -> int:
    answer = ask_for(url, "/v1/status", lambda body: body.get("status") in EXIT_CODES)
    code = 0 if any_state else EXIT_CODES[answer["status"]]
    if form == "json":
        show_json(answer)
        return code
    try:
        _show(answer)
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(
            f"{url}/v1/status answers what this version cannot read ({type(error).__name__}: {error})",
            "use the version that runs there, or --format json",
        ) from None
    return code


def _show(answer: JsonRecord) -> None:
    click.echo(services_table(answer["services"], screen()) if answer["services"] else "no verdict in the window yet")
    for each in answer["services"]:
        if each["status"] in ("warning", "critical", "no_data"):  # the table is enough for the others
            where = f"{each['service']}, {each['environment']}, {each['rubric']}"
            click.echo(visible(f"  {where}: {each['reason']}"))
    _show_metrics(answer.get("metrics", ()))
    if any(str(each["service"]).startswith("unknown_service") for each in answer["services"]):
        click.echo("hint: some traces name no service; set OTEL_SERVICE_NAME=its-name in the application")
    for each in answer.get("anomalies", ()):
        click.echo(visible(f"suspicious: {each['cause']}"))
        click.echo(visible(f"remedy: {each['remedy']}"))
    for each in answer.get("firing", ()):
        where = ", ".join(each["labels"].values()) or "this monitor"
        click.echo(visible(f"  alert {each['condition']} ({each['severity']}), {where}: {each['said']}"))
    if answer.get("judge") is not None:
        _show_judge(answer["judge"])
    _show_embeddings(answer.get("embeddings") or {})
    if answer.get("pull") is not None:
        _show_pull(answer["pull"])
    if answer.get("late_references") is not None:
        _show_late_references(answer["late_references"])
    _show_prompts(answer.get("prompts", ()))
    for each in answer["exports"]:
        reported = f"{each['destination']}: {each['state']}" + (f" ({each['reason']})" if each["reason"] else "")
        unseen = f"{each['unseen']} not seen there yet, " if each["unseen"] else ""
        absent = f"{each['unarrived']} did not arrive, " if each.get("unarrived") else ""
        held = f"{each['held']} of them held back for their trace, " if each.get("held") else ""
        waiting = f"{each['waiting']} wait, {held}"
        click.echo(visible(f"export to {reported}: {waiting}{unseen}{absent}{each['dead']} given up"))
    outcomes, alerts = answer["outcomes"], answer["alerts"]
    ended = ", ".join(f"{reason} {count}" for reason, count in outcomes["ended"].items() if count) or "none"
    thresholds = alerts["thresholds"]
    click.echo(
        f"\noverall {answer['status']} over the last {answer['window_s']:g} s, mode {alerts['mode']}, ", nl=False
    )
    click.echo(f"thresholds {thresholds['warning']:g} and {thresholds['critical']:g}")
    click.echo(f"since start: traces seen {outcomes['seen']}, open {outcomes['open']}, ended: {ended}")
    click.echo(visible(f"sampling rate {answer['sampling']['rate']:g}, version {answer['version']}, "), nl=False)
    click.echo(visible(f"configuration {answer['config_fingerprint']}, up {answer['uptime_s']:.0f} s"))


def services_table(services: Sequence[JsonRecord], columns: int | None) -> str:
    """A table of the services; where that is wider than a terminal's ``columns``, the same in fewer of them."""
    head = ("status", "service", "environment", "rubric", "pass ratio", "95 % from", "to", "n", "failed", "incomplete")
    rows = [
        (
            str(each["status"]), str(each["service"]), str(each["environment"]), str(each["rubric"]),
            number(each["pass_ratio"]), number(each["interval_lower"]), number(each["interval_upper"]),
            in_clusters(each["n"], each["clusters"], "session"), str(each["failures"]), str(each["incomplete"]),
        )
        for each in services
    ]  # fmt: skip
    whole = table(head, rows, columns)
    if columns is None or max(map(len, click.unstyle(whole).splitlines())) <= columns:
        return whole
    few = [
        (
            status.replace("_", " "), f"{service} {environment}", rubric, ratio, f"{lower} – {upper}", n,
            failed if incomplete == "0" else f"{failed}, {incomplete} undecided",
        )
        for status, service, environment, rubric, ratio, lower, upper, n, failed, incomplete in rows
    ]  # fmt: skip
    return table(("status", "service", "rubric", "pass", "95 %", "n", "failed"), few, columns)


def _show_metrics(metrics: Sequence[JsonRecord]) -> None:
    """Continuous metrics under their limits."""
    if not metrics:
        return
    head = ("status", "service", "environment", "metric", "value", "95 % from", "to", "n", "warning", "critical")
    rows = [
        (
            str(each["status"]), str(each["service"]), str(each["environment"]), str(each["metric"]),
            number(each["value"]), number(each["lower"]), number(each["upper"]),
            in_clusters(each["n"], each["clusters"], "session"), number(each["warning"]), number(each["critical"]),
        )
        for each in metrics
    ]  # fmt: skip
    click.echo("\n" + table(head, rows))
    for each in metrics:
        if each["status"] in ("warning", "critical"):
            click.echo(visible(f"  {each['service']}, {each['environment']}, {each['metric']}: {each['reason']}"))


def _show_prompts(prompts: Iterable[JsonRecord]) -> None:
    """Prompts of Langfuse that cannot be read."""
    for each in prompts:
        if each["reason"]:
            used = "its metric is unavailable" if each["used"] is None else f"{each['used']}, read before, is used"
            click.echo(visible(f"prompt {each['name']}: {each['reason']}; {used}"))


def _show_pull(pull: JsonRecord) -> None:
    reported = f"reading from {pull['server'] or 'Langfuse'}: {pull['state']}" + (
        f" ({pull['reason']})" if pull["reason"] else ""
    )
    lag = "" if pull["lag_s"] is None else f", {pull['lag_s']:.0f} s behind"
    click.echo(
        visible(f"{reported}, {amount(pull['taken'], 'trace')} taken, {pull['pending']} not whole or not read yet{lag}")
    )


def _show_late_references(late: JsonRecord) -> None:
    if not (late["waiting"] or late["given_up"] or late["failures"]):
        return
    why = f" ({late['reason']})" if late["reason"] else ""
    vain = "".join(f", {reason} {count}" for reason, count in late["failures"].items())
    reported = f"{amount(late['waiting'], 'verdict')} to be revised, {late['given_up']} left as they are"
    click.echo(visible(f"references that came late: {late['state']}{why}, {reported}{vain}"))


def _show_embeddings(found: JsonRecord) -> None:
    if found.get("outage") or found.get("waiting"):
        out = f"out of reach ({found['outage']})" if found["outage"] else "being tried"
        click.echo(visible(f"embeddings {found['name']}: {out}, {found['waiting']} waiting"))


def _show_judge(judge: JsonRecord) -> None:
    spent = ", ".join(
        f"${each['spent_usd']:.2f} this {each['period']}"
        + (f" of ${each['limit_usd']:.2f}" if each["limit_usd"] is not None else "")
        for each in judge["budgets"]
    )
    click.echo(visible(f"judge {judge['name']}: {judge['in_flight']} in flight, {judge['waiting']} waiting, {spent}"))
    for name in judge.get("estimating", ()):
        click.echo(visible(f"  {name} gives no account of its tokens: what is spent on it is an estimate"))
    for name in judge.get("unpriced", ()):
        click.echo(visible(f"  no price is known of {name}: the dollars are without it; set evaluators.judge.price"))
    for model in judge["models"]:
        if model["state"] != "closed":
            click.echo(visible(f"  {model['model']} is {model['state'].replace('_', ' ')}: {model['reason']}"))
    thinned = {priority: share for priority, share in judge["shares"].items() if share < 1.0}
    if thinned:
        reported = ", ".join(f"{share:.0%} of priority {priority}" for priority, share in thinned.items())
        click.echo(f"  the budget reaches for {reported}")
