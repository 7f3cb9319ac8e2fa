"""Snapshots: how each part of the monitor stands at one moment. Metrics, API and pages show the same.

Anomaly: a property of the traffic that makes verdicts fewer, or other, than the configuration asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeSnapshot:
    """Verdicts of one window that went through a cascade of judges.

    ``verdicts`` counts those that passed or failed by why a stronger judge was asked: ``sure`` (it was not), ``doubt``,
    ``drawn``. ``changed`` counts those of them that it turned, from pass to fail or back. ``unanswered`` times it gave
    no answer. ``as_delivered`` is the pass ratio of the verdicts as they are; ``corrected``: whether the estimate of
    the window is the one of the strongest judge, for which 30 verdicts must have been drawn.
    """

    verdicts: Mapping[str, int]
    changed: Mapping[str, int]
    unanswered: int
    as_delivered: float
    corrected: bool


ExportState: TypeAlias = Literal["starting", "ok", "retrying", "stopped"]
"""Nothing was sent yet; it takes what it is sent; waiting helps; only a person can help (keys, address)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue: ``waiting`` items, the oldest since ``oldest_ns`` (ns since the epoch; None when none waits).

    ``parked`` items were refused or lost; ``reason`` is why the last of them was.
    """

    waiting: int = 0
    oldest_ns: int | None = None
    parked: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSnapshot:
    """One destination. ``reason`` is why it is not ok, empty when it is. Times in s since the epoch, None for never.

    ``server`` names what answers there and ``project`` where scores go to, once known. ``waiting`` items are not taken
    yet, the oldest since ``oldest_s``; ``unseen`` ones are taken and not read back yet; ``dead`` ones are given up.
    ``unarrived`` ones were taken, and something else is shown there, or nothing. ``held`` ones, among those that wait,
    are of traces that upstream has not taken.
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
"""Not reached yet; all well; reached, and this monitor's clock is off; the database is away and waiting helps; only a
person can (address, rights, schema)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """One monitor's part. ``reason`` is why it is not ok, empty when it is.

    ``database`` is its address without credentials. ``monitors`` is how many were there in the latest round that
    reached it, this one included, and ``leases`` what this one alone may do. ``away_s`` is for how long it has been
    away, in s. ``read_s`` is when a round was last whole, s since the epoch. ``rounds`` counts since the start, by how
    each ended. ``clock_offset_s`` is by how much this monitor's clock is ahead of the database's, in s, negative when
    it is behind; None until it was read. ``wrong_clock`` is what to do about it, empty where it is right.
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
"""Calls pass; none does; one does, as a probe."""
CIRCUITS: tuple[CircuitName, ...] = ("closed", "open", "half_open")
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

    ``outage`` is why the judge cannot answer now, None when it can. ``shares`` are the shares in [0, 1] of the cases
    that need the judge that its budget can pay for now, by priority. ``under_way`` cases are being judged, ``waiting``
    ones wait until they can be, the oldest since ``oldest_s``. The models of ``estimating`` give no account of their
    tokens: what is spent on them is an estimate.
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
        """Which models do not answer and why, where no majority is known to; None when one is.

        Unlike ``outage`` it lasts while a probe is under way: a provider that hangs keeps a breaker half open for as
        long as a call may take, again and again, and is not back in between.
        """
        shut = [model for model in self.models if model.circuit != "closed"]
        if not self.models or 2 * len(shut) < len(self.models):
            return None
        return "; ".join(f"{model.model}: {model.reason or 'it is being tried'}" for model in shut)


LateReferenceState: TypeAlias = Literal["ok", "waiting", "retrying", "stopped", "off"]
"""All well; too much else waits; waiting helps; only a person can (keys, address, rights); no Langfuse to read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateReferenceSnapshot:
    """``reason`` is why it is not ok, empty when it is.

    ``waiting`` traces are to be read and judged again, the oldest since ``oldest_s`` (s since the epoch, None when none
    does); ``given_up`` of those that are remembered never will be. ``revised`` and ``unchanged`` (judged again, with
    the same verdicts) count since the start, and ``failures`` attempts that came to nothing, by why.
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
        """Read; the last one that was read is used in its place; there is none, and its metric is unavailable."""
        if not self.reason:
            return "read"
        return "missing" if self.used is None else "fallback"


PullState: TypeAlias = Literal["starting", "ok", "waiting", "retrying", "stopped"]
"""Not read yet; all well; too much waits for judging; waiting helps; only a person can (keys, address, rights)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSnapshot:
    """The one source that is read. ``reason`` is why it is not ok, empty when it is.

    ``server`` names what answers there, ``project`` whose traces they are, ``reads`` by which interface, once known.
    ``pending`` traces were seen and are not whole yet, or have not been read. ``lag_s`` is for how long, in s, what is
    there has not been listed, or what is whole has not been read; None until the first reading succeeded.
    ``read_s`` is when it was last read without an error, s since the epoch. ``rows``, ``taken`` (traces) and ``errors``
    (by reason) count since the start.
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
    """The randomness of trace ids is not uniform: the sample is not the share that it is taken for."""
    SPLIT_TRACES = "split_traces"
    """Spans of one trace arrive in different places, or are lost: what arrives here are fragments."""
    ROOTLESS_TRACES = "rootless_traces"
    """Traces begin in processes whose spans do not arrive here."""
    DISBELIEVED_CLAIMS = "disbelieved_claims"
    """Traces claim to stand for more than is believed: their senders may choose what they claim."""
    SILENT_ROUTES = "silent_routes"
    """A route of the configuration matches none of the traces that arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One line of cause, one of remedy. ``service`` is None when it is about all of them."""

    kind: AnomalyKind
    service: str | None
    cause: str
    remedy: str
