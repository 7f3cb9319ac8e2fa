"""Setup: receivers as they are configured, mistakes told, and no secret ever shown."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner

from sidejudge.monitor.alerting.notify.build import receivers
from sidejudge.monitor.cli import main
from sidejudge.monitor.config import ConfigError, load
from sidejudge.monitor.config.notify import names
from sidejudge.scoring.alerts.condition import Severity
from tests.fakes.receiver import Act, receiving

SECRETS = {"SLACK": "https://hooks.slack.example/services/T0/B0/slacksecret", "KEY": "keysecret",
           "HOOK": "https://hook.example/?token=hooksecret", "TOKEN": "tokensecret"}  # fmt: skip
ALL = [
    {"alertmanager": {"url": "http://am:9093/", "token": "${TOKEN}", "labels": {"pod": "a"}}},
    {"webhook": {"url": "${HOOK}", "secret": "${KEY}", "severity": "critical", "reasons": False}},
    {"slack": {"url": "${SLACK}", "digest": "1h"}},
    {"slack": {"url": "${SLACK}"}},
    {"name": "night-shift", "slack": {"url": "${SLACK}"}},
]


def configured(tmp_path, environ=SECRETS, **alerts):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(yaml.safe_dump({"alerts": alerts}))
    return load(path, environ)


def refused(tmp_path, **alerts):
    with pytest.raises(ConfigError) as caught:
        configured(tmp_path, **alerts)
    return str(caught.value)


def test_receivers_are_named_by_their_kind_or_as_the_operator_says(tmp_path):
    config = configured(tmp_path, notify=ALL)
    reported = receivers(config, lambda: 0)
    assert [each.name for each in reported] == ["alertmanager", "webhook", "slack", "slack-2", "night-shift"]
    assert [each.keeps_state for each in reported] == [True, False, False, False, False]
    assert [each.least for each in reported][:3] == [Severity.INFO, Severity.CRITICAL, Severity.WARNING]
    assert [each.digest_ns for each in reported] == [None, None, 3_600 * 10**9, None, None]


def test_a_name_of_ones_own_that_is_taken_is_refused(tmp_path):
    stated = refused(tmp_path, notify=[{"slack": {"url": "${SLACK}"}}, {"name": "slack", "slack": {"url": "${SLACK}"}}])
    assert "alerts.notify" in stated
    assert "two entries are named 'slack'" in stated


@pytest.mark.parametrize(
    ("alerts", "words"),
    [
        ({"notify": [{}]}, "exactly one of alertmanager, webhook, slack, pagerduty, opsgenie"),
        ({"notify": [{**ALL[0], **ALL[2]}]}, "got alertmanager and slack"),
        ({"notify": [{"slack": {"url": "hooks.slack.example/tokensecret"}}]}, "must be an address such as"),
        ({"notify": [{"slack": {"url": "ftp://x/keysecret"}}]}, "must be an address such as"),
        ({"notify": [{"pagerduty": {"url": "https://x"}}]}, "line 3): is required"),
        ({"notify": [{"webhook": {"url": "https://x", "template": "{{ title"}}]}, "is no Jinja2 template"),
        ({"notify": [{"email": {"host": "m", "sender": "a@b", "to": ["nobody"]}}]}, "must be an e-mail address"),
        ({"notify": [{"webhook": {"url": "https://x", "secret": 12345678}}]}, "got something else"),
        ({"notify": [{"webhook": {"url": "https://x", "secret": ""}}]}, "alerts.notify[0].webhook.secret"),
        ({"notify": [{"slak": {"url": "https://x"}}]}, "did you mean slack?"),
        ({"notify": [{"alertmanager": {"url": "http://x", "labels": {"a-b": "c"}}}]}, "is no name of a label"),
        ({"notify": [{"alertmanager": {"url": "http://x", "labels": {"severity": "c"}}}]}, "set by the alert itself"),
        ({"notify": [{"slack": {"url": "${NOT_SET}"}}]}, "NOT_SET"),
        ({"notify": [{"slack": "https://x/tokensecret"}]}, "must be a map of keys, got something else"),
        ({"notify": ["tokensecret"]}, "must be a map of keys, got something else"),
        ({"notify": "tokensecret"}, "got something else"),
        ({"links": {"trace": "https://x/traces/"}}, "must hold {trace_id}"),
        ({"report": {"at": "25:00"}}, "must be a time of day"),
        ({"report": {"at": "08:00", "timezone": "Mars/Olympus"}}, "no time zone that this machine knows"),
        ({"remind": "0s"}, "must be longer than zero"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_without_secrets(tmp_path, alerts, words):
    stated = refused(tmp_path, **alerts)
    assert words in stated
    assert "alerts." in stated
    for secret in ("tokensecret", "keysecret", "12345678"):
        assert secret not in stated


def test_check_shows_who_is_told_and_no_secret(tmp_path, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "sidejudge.yaml"
    path.write_text(yaml.safe_dump({"alerts": {"notify": ALL, "report": {"at": "07:30"}}}))
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 0, result.output
    for shown in ("alertmanager", "http://am:9093/", "webhook", "slack", "night-shift", "07:30", "severity: critical"):
        assert shown in result.output
    assert "secret" not in result.output.replace("secret: set, not shown", "")


def test_a_secret_that_changes_does_not_change_the_fingerprint_and_is_not_in_it(tmp_path):
    config = configured(tmp_path, notify=ALL)
    other = configured(tmp_path, {**SECRETS, "KEY": "another"}, notify=ALL)
    assert config.fingerprint == other.fingerprint
    assert "keysecret" not in repr(config)
    assert names(config.alerts.notify)[0] == "alertmanager"


@pytest.fixture
def doctor(tmp_path):
    def examine(*flags, **alerts):
        path = tmp_path / "sidejudge.yaml"
        stated = {"alerts": alerts, "store": {"path": str(tmp_path / "s.sqlite")},
                "sources": {"otlp": {"http": "127.0.0.1:0"}}, "api": {"listen": "127.0.0.1:0"}}  # fmt: skip
        path.write_text(yaml.safe_dump(stated))
        return CliRunner().invoke(main, ["doctor", "--config", str(path), *flags])

    return examine


def test_doctor_sends_nothing_unless_asked(doctor):
    with receiving() as fake:
        result = doctor(notify=[{"slack": {"url": fake.url}}])
    assert "notify slack" in result.output
    assert "configured, not tried" in result.output
    assert fake.got == []


def test_doctor_sends_a_test_to_each_when_asked_and_tells_who_does_not_take_it(doctor):
    with receiving() as good, receiving() as bad:
        bad.act = lambda _: Act(status=404, body=b"no_service")
        result = doctor(
            "--notify",
            notify=[{"slack": {"url": f"{good.url}/T0/slacksecret"}},
                    {"webhook": {"url": f"{bad.url}/hooksecret", "secret": "keysecret"}},
                    {"alertmanager": {"url": good.url}}],
        )  # fmt: skip
    assert result.exit_code == 1
    assert "took a test notice" in result.output
    assert "it answered 404 Not Found: no_service" in " ".join(result.output.split())
    assert "secret" not in result.output.replace("its secret in", "")
    assert sorted(got.path for got in good.got) == ["/T0/slacksecret", "/api/v2/alerts"]
    assert bad.got[0].json["kind"] == "test"


def test_check_cautions_of_a_report_that_nobody_gets_and_of_traces_without_links(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(yaml.safe_dump({"alerts": {"notify": [{"alertmanager": {"url": "http://am"}}], "report": {}}}))
    result = CliRunner().invoke(main, ["check", str(path)])
    assert "alerts.report: nobody gets it" in result.output
    assert "alerts.links.trace is not set" in result.output


@pytest.mark.parametrize("fleet", [{}, {"fleet": {"database": "${FLEET}"}}])
def test_check_cautions_of_receivers_that_get_each_monitors_own_notices(tmp_path, fleet):
    path = tmp_path / "sidejudge.yaml"
    alerts = {"instance": "pod-1", "notify": [{"slack": {"url": "${SLACK}"}}]}
    path.write_text(yaml.safe_dump({"alerts": alerts, **fleet}))
    stated = {"SLACK": "https://hooks.example/a", "FLEET": "postgresql://db/fleet"}
    result = CliRunner(env=stated).invoke(main, ["check", str(path)])
    assert "alerts.links.trace is not set" in result.output
    assert ("alerts.notify[0]: fits one monitor" in result.output) == (not fleet)


def test_names_are_sent_unless_a_receiver_says_otherwise_and_quotations_contradict_that(tmp_path):
    given = [{"slack": {"url": "${SLACK}"}}, {"webhook": {"url": "${HOOK}", "names": False}}]
    built = receivers(configured(tmp_path, notify=given), lambda: 0)
    assert [each.names for each in built] == [True, False]
    given = [{"slack": {"url": "${SLACK}", "names": False, "reasons": "quoted"}}]
    with pytest.raises(ConfigError, match="names: false leaves out what reasons: quoted would send"):
        configured(tmp_path, notify=given)
