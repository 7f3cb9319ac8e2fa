"""The sections of the configuration on the receivers of alerts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, time, tzinfo
from typing import Annotated, Literal, Self, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, SecretStr, model_validator

from sidejudge.integrations.notify.webhook import body_template, standard_signature
from sidejudge.scoring.notices.notice import check_runbooks
from sidejudge.scoring.trace.span import Json  # noqa: F401  # pydantic looks here for what JsonMap names

from .section import GIVEN_AS_LIST, DestinationName, JsonMap, Secret, Section, Url, is_url
from .sources import OwnHeaders, OwnHeaderValue
from .units import PositiveDuration

SeverityName: TypeAlias = Literal["critical", "warning", "info"]
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_KINDS = (
    "alertmanager", "webhook", "slack", "pagerduty", "opsgenie", "teams", "google_chat", "email", "plugin",
)  # fmt: skip
_AT = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def _is_secret_url(url: SecretStr) -> SecretStr:
    is_url(url.get_secret_value())
    return url


def _has_trace_id(url: str) -> str:
    if "{trace_id}" not in url:
        raise ValueError(f"must hold {{trace_id}} where the id of a trace goes, got {url!r}")
    return is_url(url)


def _is_template(text: str) -> str:
    try:
        body_template(text)
    except Exception as error:  # noqa: BLE001  # whatever a template raises is a mistake in it
        raise ValueError(f"is no Jinja2 template: {error}") from None
    return text


def _is_mail_address(address: str) -> str:
    _, at, domain = address.rpartition("@")
    if not at or not domain or not address.isprintable() or any(char in address for char in " ,;<>"):
        raise ValueError(f"must be an e-mail address such as ops@example.com, got {address!r}")
    return address


def _signs(secret: SecretStr) -> SecretStr:
    try:
        standard_signature(secret.get_secret_value(), "", "", b"")
    except ValueError:
        raise ValueError("must be base64 after whsec_") from None
    return secret


def _are_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    wrong = next((name for name in labels if not _LABEL.fullmatch(name)), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is no name of a label; letters, digits and _ are")
    if taken := {"alertname", "severity"} & labels.keys():
        raise ValueError(f"{min(taken)} is set by the alert itself")
    return labels


def _is_time(text: str) -> str:
    if not _AT.fullmatch(text):
        raise ValueError(f'must be a time of day such as "08:00", got {text!r}')
    return text


def _is_timezone(name: str) -> str:
    if name != "UTC":
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"is no time zone that this machine knows, such as Europe/Berlin: {name!r}") from None
    return name


SecretUrl: TypeAlias = Annotated[SecretStr, AfterValidator(_is_secret_url)]
TraceUrl: TypeAlias = Annotated[str, AfterValidator(_has_trace_id)]
MailAddress: TypeAlias = Annotated[str, AfterValidator(_is_mail_address)]


class ReasonsSection(Section):
    """**Base of all receivers**: which parts of the reasons of failing traces are sent."""

    reasons: bool | Literal["quoted"] = True
    """whether reasons of failing traces are sent: `true` without contents by people and models, `quoted` with them"""
    names: bool = True
    """whether notices name parts of the application: tools, agents, models, arguments, exceptions, terms of scenarios,
    and parts of the traffic such as a tenant or a version"""

    @model_validator(mode="after")
    def _do_not_contradict(self) -> Self:
        if self.reasons == "quoted" and not self.names:
            raise ValueError("names: false leaves out what reasons: quoted would send; change one of them")
        return self


class AlertmanagerReceiver(ReasonsSection):
    """A Prometheus Alertmanager, API v2. Alerts are sent to it, and sent again while they fire."""

    url: Url
    """its address, up to and without `/api/v2/alerts`"""
    token: OwnHeaderValue | None = None
    """bearer token, as `${NAME}`"""
    labels: Annotated[Mapping[str, str], AfterValidator(_are_labels)] = Field(default_factory=dict)
    """labels that every alert gets; several monitors of one service need one that differs, such as the pod, or one ends
    the other's alerts"""
    severity: SeverityName = "info"
    """least severe alert that is sent"""


class PagerReceiver(ReasonsSection):
    """**Base of receivers that hold an incident for each alert**: they get neither digests nor reports."""

    severity: SeverityName = "critical"
    """least severe alert that is sent"""
    digest: None = None


class PeopleReceiver(ReasonsSection):
    """**Base of receivers that people read**."""

    severity: SeverityName = "warning"
    """least severe alert that is sent at once"""
    digest: PositiveDuration | None = None
    """less severe ones are sent together, at most once in this time; without it: not"""


class WebhookReceiver(PeopleReceiver):
    """Any HTTP receiver, JSON and signed as Standard Webhooks are; see `docs/reference/notices.md`."""

    url: SecretUrl
    """where to post to, as `${NAME}` if it holds a secret; it is never shown"""
    secret: Annotated[Secret, AfterValidator(_signs)] | None = None
    """common secret of the signature, as `${NAME}`; without it nothing is signed"""
    template: Annotated[str, AfterValidator(_is_template)] | None = None
    """body in place of the JSON, as a Jinja2 template with its fields (`title`, `text`, `alerts`, …); write each value
    as `{{ title | tojson }}`, because it may hold anything
    """
    headers: OwnHeaders = Field(default_factory=dict)
    """further headers, such as `content-type` or `authorization`, as `${NAME}`"""


class SlackReceiver(PeopleReceiver):
    """A Slack incoming webhook."""

    url: SecretUrl
    """address of the incoming webhook, as `${NAME}`; it is a secret, never shown"""


class TeamsReceiver(PeopleReceiver):
    """A Microsoft Teams workflow that posts the body of a webhook request."""

    url: SecretUrl
    """address of the workflow, as `${NAME}`; it is a secret, never shown"""


class GoogleChatReceiver(PeopleReceiver):
    """A Google Chat webhook."""

    url: SecretUrl
    """address of the webhook, as `${NAME}`; it is a secret, never shown"""


class EmailReceiver(PeopleReceiver):
    """E-mail to the same people, by SMTP."""

    host: str = Field(min_length=1)
    """SMTP server that takes submissions"""
    port: int = Field(default=587, ge=1, le=65_535)
    """its port"""
    encryption: Literal["starttls", "tls", "none"] = "starttls"
    """`tls` from the first byte (port 465), `starttls`, or `none`"""
    user: str | None = None
    """user name; without it no login"""
    password: Secret | None = None
    """password, as `${NAME}`"""
    sender: MailAddress
    """address that it comes from"""
    to: Annotated[tuple[MailAddress, ...], GIVEN_AS_LIST] = Field(min_length=1)
    """addresses that get it"""


class PagerDutyReceiver(PagerReceiver):
    """A service of PagerDuty (Events API v2): an incident for each alert, resolved with it."""

    routing_key: Secret
    """integration key of the service, as `${NAME}`"""
    url: Url = "https://events.pagerduty.com/v2/enqueue"
    """address; of the EU: `events.eu`"""


class OpsgenieReceiver(PagerReceiver):
    """Opsgenie (Alert API v2): an alert for each alert, closed with it."""

    key: OwnHeaderValue
    """key of an API integration, as `${NAME}`"""
    url: Url = "https://api.opsgenie.com"
    """address; of the EU: `https://api.eu.opsgenie.com`"""


class PluginReceiver(PeopleReceiver):
    """A notifier that an installed package brings by its entry point in `sidejudge.notifiers`."""

    use: str = Field(min_length=1)
    """name of the entry point"""
    arguments: JsonMap = Field(default_factory=dict)
    """keyword arguments that it is made with"""


Receiver: TypeAlias = (
    AlertmanagerReceiver
    | WebhookReceiver
    | SlackReceiver
    | PagerDutyReceiver
    | OpsgenieReceiver
    | TeamsReceiver
    | GoogleChatReceiver
    | EmailReceiver
    | PluginReceiver
)


class NotifySection(Section):
    """One receiver of alerts: exactly one of the keys below, and `name`."""

    name: DestinationName | None = None
    """its name in metrics and logs (default: its kind, numbered from the second on)"""
    alertmanager: AlertmanagerReceiver | None = None
    """a Prometheus Alertmanager"""
    webhook: WebhookReceiver | None = None
    """any HTTP receiver, signed JSON"""
    slack: SlackReceiver | None = None
    """a Slack incoming webhook"""
    pagerduty: PagerDutyReceiver | None = None
    """a service of PagerDuty"""
    opsgenie: OpsgenieReceiver | None = None
    """Opsgenie"""
    teams: TeamsReceiver | None = None
    """a Microsoft Teams workflow"""
    google_chat: GoogleChatReceiver | None = None
    """a Google Chat webhook"""
    email: EmailReceiver | None = None
    """e-mail by SMTP"""
    plugin: PluginReceiver | None = None
    """a notifier of an installed package"""

    @model_validator(mode="after")
    def _is_one(self) -> NotifySection:
        stated = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(stated) != 1:
            raise ValueError(
                f"must hold exactly one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}, got "
                f"{' and '.join(stated) or 'none'}"
            )
        return self

    @property
    def receiver(self) -> Receiver:
        """The one that is given."""
        given: Receiver = next(each for kind in _KINDS if (each := getattr(self, kind)) is not None)
        return given

    @property
    def kind(self) -> str:
        """The key that is given, or the name of the plugin's entry point."""
        if self.plugin is not None:
            return self.plugin.use
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)


def names(entries: tuple[NotifySection, ...]) -> list[str]:
    """The name of each entry: its own, else its kind, numbered where it comes again."""
    found: list[str] = []
    for entry in entries:
        number = 1
        while (name := entry.name or (entry.kind if number == 1 else f"{entry.kind}-{number}")) in found:
            if entry.name is not None:
                raise ValueError(f"two entries are named {name!r}; metrics and logs need one name for each")
            number += 1
        found.append(name)
    return found


class LinksSection(Section):
    """Links in messages."""

    trace: TraceUrl | None = None
    """address of a trace's page with `{trace_id}` in it: of Langfuse, or of this monitor
    (`http://monitor:8790/traces/{trace_id}`)"""
    runbooks: Annotated[Url, AfterValidator(check_runbooks)] | None = None
    """where runbooks lie, for notices, rules and boards: each monitor serves them (`http://monitor:8790/help/alert`). A
    runbook's name follows, or takes the place of `{runbook}`: `https://git.example.org/runbooks/{runbook}.md`"""
    dashboard: Url | None = None
    """address of a dashboard, with `{service}`, `{environment}`, `{rubric}` and `{metric}` where these go: of Grafana,
    or of this monitor (`http://monitor:8790/services?service={service}`)"""


class ReportSection(Section):
    """A daily report to every receiver of alerts but Alertmanager."""

    at: Annotated[str, AfterValidator(_is_time)] = "08:00"
    """time of day, in quotes"""
    timezone: Annotated[str, AfterValidator(_is_timezone)] = "UTC"
    """time zone, such as `Europe/Berlin`"""

    @property
    def time(self) -> time:
        """The time of day."""
        hour, _, minute = self.at.partition(":")
        return time(int(hour), int(minute))

    @property
    def zone(self) -> tzinfo:
        """The time zone; UTC is known without a database of them."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)
