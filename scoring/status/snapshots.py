"""Snapshots: the state of each part of the monitor at one moment. Metrics, API and pages show the same.

A text beside the type of a field is what the API's schema says of it. An anomaly is a property of the traffic that
makes verdicts fewer than, or different from, what the configuration asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias, get_args

_WHY: Final = "why it is not `ok`; empty when it is"
_SERVER: Final = "what answers there; null until it has"


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeSnapshot:
    """Verdicts of one window that went through a cascade of judges. ``corrected`` needs 30 drawn verdicts."""

    verdicts: Annotated[Mapping[str, int], "by why a stronger judge was asked: `sure` (it was not), `doubt`, `drawn`"]
    changed: Annotated[Mapping[str, int], "those that it turned, from pass to fail or back"]
    unanswered: Annotated[int, "times that a stronger judge gave no answer"]
    as_delivered: Annotated[float, "pass ratio of the verdicts as they are"]
    corrected: Annotated[bool, "whether 30 verdicts were drawn; before that the pass ratio is as delivered"]


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
    """One destination. Times in s since the epoch, None for never."""

    destination: str
    state: Annotated[ExportState, "`retrying`: waiting helps; `stopped`: only a person can"]
    reason: Annotated[str, _WHY] = ""
    server: Annotated[str | None, _SERVER] = None
    project: Annotated[str | None, "where scores go to; null until it is known"] = None
    waiting: Annotated[int, "what it has not accepted yet"] = 0
    oldest_s: Annotated[float | None, "since when the oldest of them waits"] = None
    unseen: Annotated[int, "scores that it accepted and that were not read back yet"] = 0
    unarrived: Annotated[int, "scores that it accepted and does not show"] = 0
    held: Annotated[int, "scores of traces that upstream has not taken, among those that wait"] = 0
    dead: Annotated[int, "what was given up"] = 0
    last_success_s: float | None = None


FleetState: TypeAlias = Literal["starting", "ok", "wrong_clock", "retrying", "stopped"]
"""Not reached yet; all well; reached, but this monitor's clock is wrong; the database is away and waiting helps; only a
person can help (address, rights, schema).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSnapshot:
    """One monitor's part. ``read_s`` is in s since the epoch.

    ``clock_offset_s`` is how far this monitor's clock is ahead of the database's, in s, negative when it is behind;
    None until it was read. ``wrong_clock`` is the remedy, empty where the clock is right.
    """

    state: Annotated[
        FleetState,
        "`wrong_clock`: this monitor's clock is off, `reason` says by how much; `retrying`: waiting helps; "
        "`stopped`: only a person can",
    ]
    reason: Annotated[str, _WHY] = ""
    name: Annotated[str, "name of this monitor in the fleet"]
    database: Annotated[str, "address, without credentials"]
    away_s: Annotated[float, "for how long the database has been away; this monitor goes on alone meanwhile"] = 0.0
    monitors: Annotated[int, "monitors that are there, this one included"] = 1
    leases: Annotated[tuple[str, ...], "what this monitor alone may do"] = ()
    schema_version: Annotated[int | None, "of the tables; null until it is known"] = None
    read_s: Annotated[float | None, "when a round was last whole"] = None
    rounds: Annotated[tuple[tuple[str, int], ...], "rounds since the start, by how they ended"] = ()
    clock_offset_s: float | None = None
    wrong_clock: str = ""


CircuitName: TypeAlias = Literal["closed", "open", "half_open"]
"""Calls pass; none passes; one passes as a probe."""
CIRCUITS: tuple[CircuitName, ...] = get_args(CircuitName)
Period: TypeAlias = Literal["hour", "day"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeModelSnapshot:
    """One model and its circuit breaker. Times in s since the epoch."""

    model: str
    circuit: Annotated[CircuitName, "`closed`: it is asked; `open`: it is not; `half_open`: it is tried"]
    reason: Annotated[str, "why it is not closed"] = ""
    since_s: float | None = None
    next_probe_s: Annotated[float | None, "when it is tried again"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsSnapshot:
    """The model of embeddings. ``oldest_s`` is in s since the epoch."""

    name: Annotated[str, "the model"]
    outage: Annotated[str | None, "why its endpoint cannot be asked now; null when it can"]
    waiting: Annotated[int, "cases that wait until it can be asked"]
    oldest_s: Annotated[float | None, "since when the oldest of them waits"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """US dollars since the running hour or day (UTC) began; ``limit_usd`` None where there is no budget."""

    period: Period
    spent_usd: float
    limit_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSnapshot:
    """The judge, or the panel of judges. ``oldest_s`` is in s since the epoch."""

    name: Annotated[str, "the model, or the panel"]
    outage: Annotated[str | None, "why no answer can be had now; null when one can"]
    models: tuple[JudgeModelSnapshot, ...]
    spending: tuple[Spending, ...]
    shares: Annotated[
        Mapping[str, float],
        "share of the cases that need the judge that its budget can pay for now, by priority",
    ]
    under_way: Annotated[int, "cases that are being judged"]
    waiting: Annotated[int, "cases that wait until the judge can be asked"]
    oldest_s: Annotated[float | None, "since when the oldest of them waits"] = None
    estimating: Annotated[
        tuple[str, ...],
        "models that give no account of their tokens: what is spent on them is an estimate",
    ] = ()
    unpriced: Annotated[
        tuple[str, ...],
        "models of which no price is known: what is spent on them is not known, and in no sum of dollars",
    ] = ()

    @property
    def unreachable(self) -> str | None:
        """The models that do not answer, and why; None while a majority is known to answer.

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
    """Traces that are to be read and judged again. ``oldest_s`` is in s since the epoch."""

    state: Annotated[
        LateReferenceState,
        "`waiting`: others go first; `retrying`: waiting helps; `stopped`: only a person can; `off`: no Langfuse is "
        "configured that they could be read from",
    ]
    reason: Annotated[str, _WHY] = ""
    waiting: Annotated[int, "traces that are to be judged again"] = 0
    oldest_s: Annotated[float | None, "since when the oldest of them waits"] = None
    given_up: Annotated[int, "traces whose verdict stands all the same; `/v1/traces/{id}` names the reason"] = 0
    revised: Annotated[int, "judged again since the start, with another verdict"] = 0
    unchanged: Annotated[int, "judged again since the start, with the same verdicts"] = 0
    failures: Annotated[tuple[tuple[str, int], ...], "attempts since the start that came to nothing, by why"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot:
    """One prompt of Langfuse."""

    name: str
    requested: Annotated[str, "its label or version as configured"]
    used: Annotated[str | None, "the version in use; null: none could ever be read"]
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
    """The one source that is read. ``lag_s`` is None until a reading succeeded; ``read_s`` is in s since the epoch."""

    state: Annotated[
        PullState, "`waiting`: too much waits here already; `retrying`: waiting helps; `stopped`: only a person can"
    ]
    reason: Annotated[str, _WHY] = ""
    server: Annotated[str | None, _SERVER] = None
    project: Annotated[str | None, "whose traces are read; null until it is known"] = None
    reads: Annotated[Literal["v2", "legacy"] | None, "by which interface; null until it is known"] = None
    pending: Annotated[int, "traces that were seen and are not whole yet, or were not read"] = 0
    lag_s: Annotated[float | None, "for how long what is there was not listed, or what is whole not read"] = None
    read_s: float | None = None
    rows: Annotated[int, "observations that were read since the start"] = 0
    taken: Annotated[int, "traces that were taken since the start"] = 0
    errors: Annotated[tuple[tuple[str, int], ...], "readings that ended early since the start, by why"] = ()


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
    """One line of cause, one of remedy."""

    kind: AnomalyKind
    service: Annotated[str | None, "null: all of them"]
    cause: str
    remedy: str
