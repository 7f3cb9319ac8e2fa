"""Every link to a runbook, in every notice, rule and board, leads to the page on that alert: each is followed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_string, policy
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
import yaml
from click.testing import CliRunner

from sidejudge.monitor.alerting.notify.build import receivers
from sidejudge.monitor.cli.export import export
from sidejudge.monitor.config import Config
from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.notices.notice import Notice, NoticeKind
from tests.alert_events import event
from tests.fakes.mail_server import mail_server
from tests.fakes.receiver import receiving
from tests.running import Running

CLIENT = httpx.Client()
CONDITIONS = conditions(Declaration())
WAYS = ("/help/alert", "/help/alert/", "/help/runbooks", "/help/alert/{runbook}.md", "/help/dashboards/runbooks")
"""Where an operator may say that runbooks lie; the third is what earlier versions advised."""


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:

    folder = tmp_path_factory.mktemp("monitor")
    running = Running(folder, {}).start()
    yield running.api
    running.close()


def exported(folder: Path, runbooks: str, *arguments: str) -> str:
    file = folder / "sidejudge.yaml"
    file.write_text(yaml.safe_dump({"alerts": {"links": {"runbooks": runbooks}}}))
    done = CliRunner().invoke(export, [*arguments, "--config", str(file)])
    assert done.exit_code == 0, done.output
    return done.output


@cache
def followed(link: str, alert: str) -> None:
    """The link is answered with the page on this alert."""
    answer = CLIENT.get(link)
    assert answer.status_code == 200, f"{link} of {alert}: {answer.status_code}"
    assert re.search(rf"<h1[^>]*>\s*{alert}: ", answer.text), f"{link} is not the page on {alert}"


@pytest.mark.parametrize("way", WAYS)
def test_every_alert_of_the_rules_links_to_its_runbook(monitor: str, tmp_path: Path, way: str) -> None:
    found = yaml.safe_load(exported(tmp_path, monitor + way, "rules"))
    alerts = [rule for group in found["groups"] for rule in group["rules"] if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) >= len(CONDITIONS)
    for rule in alerts:
        followed(rule["annotations"]["runbook_url"], rule["alert"])


@pytest.mark.parametrize("way", WAYS)
def test_every_row_of_an_alert_on_a_board_links_to_its_runbook(monitor: str, tmp_path: Path, way: str) -> None:
    exported(tmp_path, monitor + way, "dashboards", "--to", str(tmp_path))
    rules = yaml.safe_load(exported(tmp_path, monitor + way, "rules"))
    board = json.loads((tmp_path / "sidejudge-overview.json").read_text())
    (table,) = [panel for panel in board["panels"] if panel["title"] == "Alerts that fire"]
    (link,) = [each["url"] for each in table["fieldConfig"]["defaults"]["links"] if each["title"] == "Its runbook"]
    expr = table["targets"][0]["expr"]
    named = {alert: slug for slug, alert in re.findall(r'"runbook", "([\w-]+)", "alertname", "(\w+)"', expr)}
    assert named.keys() == {rule["alert"] for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    for alert, runbook in named.items():
        followed(link.replace("${__data.fields.runbook}", runbook), alert)


async def test_every_notice_links_to_its_runbook_in_every_form(monitor: str) -> None:
    with receiving() as fake, mail_server() as mail:
        at = fake.url
        people = {"sender": "a@b.example", "to": ["c@d.example"]}
        config = Config.model_validate({
            "alerts": {
                "links": {"runbooks": f"{monitor}/help/alert"},
                "notify": [
                    {"alertmanager": {"url": at}}, {"webhook": {"url": at}}, {"slack": {"url": at}},
                    {"teams": {"url": at}}, {"google_chat": {"url": at}},
                    {"pagerduty": {"routing_key": "k", "url": at}}, {"opsgenie": {"key": "k", "url": at}},
                    {"email": {"host": "127.0.0.1", "port": mail.port, "encryption": "none", **people}},
                ],
            }
        })  # fmt: skip
        senders = [receiver.sender for receiver in receivers(config, lambda: 0)]
        for condition in CONDITIONS:
            before = len(fake.got), len(mail.mails)
            for sender in senders:
                await sender.send(notice(condition))
            bodies = [got.body.decode() for got in fake.got[before[0] :]] + [
                worded(each) for each in mail.mails[before[1] :]
            ]
            assert len(bodies) == len(senders)
            for body in bodies:
                links = set(re.findall(rf"{re.escape(monitor)}/help/[\w/.-]+", unquote(body)))
                assert links, f"no link in {body}"
                for link in links:
                    followed(link, condition.alert_name)


def notice(condition: Condition) -> Notice:
    about = event(
        condition=condition.id, severity=condition.severity, title=condition.title, runbook=condition.runbook,
        meaning=condition.meaning, unit=condition.unit,
    )  # fmt: skip
    return replace(Notice(id="n", kind=NoticeKind.ALERT, at_ns=about.at_ns), events=(about,))


def worded(mail: str) -> str:
    message = message_from_string(mail, policy=policy.default)
    body = message.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


@pytest.mark.parametrize(
    "runbooks", ["https://x.example/{alert}", "https://x.example/a?page=", "https://x.example/#", "ftp://x", "x y"]
)
def test_an_address_that_no_name_can_follow_is_refused(runbooks: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="runbooks"):
        Config.model_validate({"alerts": {"links": {"runbooks": runbooks}}})


def test_nothing_that_is_no_alert_is_a_runbook(monitor: str) -> None:
    for name in ("SidejudgeNoSuchAlert", "README", "pass-rate-critical/x", "PASS", "..%2f..%2fetc%2fpasswd"):
        assert CLIENT.get(f"{monitor}/help/alert/{name}").status_code == 404, name
    assert re.search(r"<h1[^>]*>\s*Runbooks<", CLIENT.get(f"{monitor}/help/alert").text)
