"""Snapshots: the state of each part of the monitor at one moment. Metrics, API and pages show the same.

An anomaly is a property of the traffic that makes verdicts fewer than, or different from, what the configuration asks
for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias, get_args


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeSnapshot:
    """Verdicts of one window that went through a cascade of judges.

    ``verdicts`` counts those that passed or failed by the reason to ask a stronger judge: ``sure`` (not asked),
    ``doubt``, ``drawn``. ``changed`` counts those of them that it turned from pass to fail or back. ``unanswered``
    times it gave no answer. ``as_delivered`` is the pass ratio of the delivered verdicts; ``corrected``: whether the
    window's estimate is of the strongest judge, which needs 30 drawn verdicts.
    """

    verdicts: Mapping[str, int]
    changed: Mapping[str, int]
    unanswered: int
    as_delivered: float
    corrected: bool


ExportState: TypeAlias = Literal["starting", "ok", "retrying", "stopped"]
"""Nothing was sent yet; deliveries succeed; waiting helps; only a person can help (keys, address)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue: ``waiting`` items, the oldest since ``oldest_ns`` (ns since the epoch; None when none waits).

    ``parked`` items were refused or lost; ``reason`` is why, for the last of them.
    """

    waiting: int = 0
    oldest_ns: int | None = None
    parked: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSnapshot:
    """One destination. ``reason`` is why it is not ok, empty when it is. Times in s since the epoch, None for never.

    ``server`` names the answering software and ``project`` the destination of scores, once known. ``waiting`` items are
    not accepted yet, the oldest since ``oldest_s``; ``unseen`` ones are accepted and not read back yet; ``dead`` ones
    are given up. ``unarrived`` ones were accepted, but the destination shows something else, or nothing. ``held`` ones,
    among those that wait, belong to traces that upstream has not accepted.
    """

    destination: str
    state: ExportState
    reason: str = ""
    server: str | None = None
    project: str | None = None
    waiting: int = 0
    oldest_s: float | None = None
    unseen: int = 0
    dead: int = 0
    unarrived: int = 0
    held: int = 0
    last_success_s: float | None = None


FleetState: TypeAlias = Literal["starting", "ok", "wrong_clock", "retrying", "stopped"]
"""Not reached yet; all well; reached, but this monitor's clock is wrong; the database is away and waiting helps; only a
person can help (address, rights, schema).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """One monitor's part. ``reason`` is why it is not ok, empty when it is.

    ``database`` is its address without credentials. ``monitors`` is their number in the latest round that reached it,
    this one included, and ``leases`` are the tasks of this one alone. ``away_s`` is how long the database has been
    away, in s. ``read_s`` is when a round last succeeded, s since the epoch. ``rounds`` counts rounds since the start,
    by their end. ``clock_offset_s`` is how far this monitor's clock is ahead of the database's, in s, negative when it
    is behind; None until it was read. ``wrong_clock`` is the remedy, empty where the clock is right.
    """

    name: str
    database: str
    state: FleetState
    reason: str = ""
    away_s: float = 0.0
    monitors: int = 1
    leases: tuple[str, ...] = ()
    schema_version: int | None = None
    read_s: float | None = None
    rounds: tuple[tuple[str, int], ...] = ()
    clock_offset_s: float | None = None
    wrong_clock: str = ""


CircuitName: TypeAlias = Literal["closed", "open", "half_open"]
"""Calls pass; none passes; one passes as a probe."""
CIRCUITS: tuple[CircuitName, ...] = get_args(CircuitName)
Period: TypeAlias = Literal["hour", "day"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeModelSnapshot:
    """One model: its circuit breaker, and why that is not closed (empty when it is). Times in s since the epoch."""

    model: str
    circuit: CircuitName
    reason: str = ""
    since_s: float | None = None
    next_probe_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """US dollars since the running hour or day (UTC) began; ``limit_usd`` None where there is no budget."""

    period: Period
    spent_usd: float
    limit_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSnapshot:
    """The judge, or the panel of judges.

    ``outage`` is why the judge cannot answer now, None when it can. ``shares`` are, by priority, the shares in [0, 1]
    of the cases for the judge that its budget can pay for now. ``under_way`` cases are being judged, ``waiting`` ones
    wait for it, the oldest since ``oldest_s``. The models of ``estimating`` do not report their tokens, so that their
    spending is an estimate.
    """

    name: str
    models: tuple[JudgeModelSnapshot, ...]
    outage: str | None
    spending: tuple[Spending, ...]
    shares: Mapping[str, float]
    under_way: int
    waiting: int
    oldest_s: float | None = None
    estimating: tuple[str, ...] = ()

    @property
    def unreachable(self) -> str | None:
        """The models that do not answer and why, where no majority is known to answer; None when one is.

        Unlike ``outage`` it lasts while a probe is under way: a hanging provider keeps a breaker half open for as long
        as a call may take, again and again, without having recovered.
        """
        shut = [model for model in self.models if model.circuit != "closed"]
        if not self.models or 2 * len(shut) < len(self.models):
            return None
        return "; ".join(f"{model.model}: {model.reason or 'it is being tried'}" for model in shut)


LateReferenceState: TypeAlias = Literal["ok", "waiting", "retrying", "stopped", "off"]
"""All well; too much else waits; waiting helps; only a person can help (keys, address, rights); no Langfuse to read
from.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateReferenceSnapshot:
    """``reason`` is why it is not ok, empty when it is.

    ``waiting`` traces are to be read and judged again, the oldest since ``oldest_s`` (s since the epoch, None when none
    waits); ``given_up`` known ones never will be. ``revised`` and ``unchanged`` (judged again, with the same verdicts)
    count since the start, and ``failures`` counts failed attempts by cause.
    """

    state: LateReferenceState
    reason: str = ""
    waiting: int = 0
    oldest_s: float | None = None
    given_up: int = 0
    revised: int = 0
    unchanged: int = 0
    failures: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot:
    """One prompt. ``requested`` is its label or version as configured; ``used`` the version in use, None for none.

    ``reason`` is why it cannot be read now, empty when it can.
    """

    name: str
    requested: str
    used: str | None
    reason: str = ""

    @property
    def state(self) -> Literal["read", "fallback", "missing"]:
        """Read; the last read one is used instead; there is none, and its metric is unavailable."""
        if not self.reason:
            return "read"
        return "missing" if self.used is None else "fallback"


PullState: TypeAlias = Literal["starting", "ok", "waiting", "retrying", "stopped"]
"""Not read yet; all well; too much waits for judging; waiting helps; only a person can help (keys, address, rights)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSnapshot:
    """The one source that is read. ``reason`` is why it is not ok, empty when it is.

    ``server`` names the answering software, ``project`` the traces' project, ``reads`` the interface, once known.
    ``pending`` traces were seen and are incomplete or unread. ``lag_s`` is the delay, in s, of listing traces or of
    reading complete ones; None until the first reading succeeded. ``read_s`` is when it was last read without an error,
    s since the epoch. ``rows``, ``taken`` (traces) and ``errors`` (by reason) count since the start.
    """

    state: PullState
    reason: str = ""
    server: str | None = None
    project: str | None = None
    reads: Literal["v2", "legacy"] | None = None
    pending: int = 0
    lag_s: float | None = None
    read_s: float | None = None
    rows: int = 0
    taken: int = 0
    errors: tuple[tuple[str, int], ...] = ()


class AnomalyKind(StrEnum):
    """The kinds of anomalies of the traffic."""

    SKEWED_SAMPLING = "skewed_sampling"
    """The randomness of trace ids is not uniform: the sample is not the intended share."""
    SPLIT_TRACES = "split_traces"
    """Spans of one trace arrive in different places, or are lost: what arrives here are fragments."""
    ROOTLESS_TRACES = "rootless_traces"
    """Traces begin in processes whose spans do not arrive here."""
    DISBELIEVED_CLAIMS = "disbelieved_claims"
    """Traces claim to represent more than is believed: their senders may choose the claim."""
    SILENT_ROUTES = "silent_routes"
    """A route of the configuration matches none of the traces that arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One line of cause, one of remedy. ``service`` is None when it concerns all services."""

    kind: AnomalyKind
    service: str | None
    cause: str
    remedy: str
