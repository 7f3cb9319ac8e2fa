"""Hysteresis: a status that changes only on lasting evidence, as a state machine without a clock.

Each look computes a status from the present numbers twice: against the thresholds, and against thresholds that are
``recovery_margin`` higher. Then, in this order:

- **Worse** is entered when at least ``needed`` of the last ``looks`` looks were that bad or worse, the latest among
them: an alarm never begins with an interval that does not show it.
- **Better** is entered when all of that number of looks were that good *with the margin*, and the present status has
  lasted for ``hold_ns``.
- **A contradicted status** ends at once: *healthy* by the first look that shows otherwise (it is *insufficient data*
until there are enough of them), an alarm where the window's interval lies above its threshold.
- **No data** is entered and left at the look that shows it.
- **Insufficient data** is entered when a look had nothing to go by at all, or when all of the last ``looks`` looks had
  too little: a sample that hovers about its minimum changes nothing. An alarm does not end in it while the window lies
  below the threshold and is merely no longer convincing. It ends in *healthy* at the first good look, unless one of the
  last was bad: then ``needed`` of them must be good.

Mode ``point`` has none of this: the seed's status depends on the present moment alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import MINUTE_NS

from .status import UNKNOWN, Status

ALARMS = (Status.WARNING, Status.CRITICAL)
_SEVERITY = {Status.HEALTHY: 0, Status.WARNING: 1, Status.CRITICAL: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hysteresis:
    """How many of the last looks a change needs, the margin of a recovery, and the least duration of a status (ns)."""

    needed: int = 10
    looks: int = 12
    recovery_margin: float = 0.02
    hold_ns: int = 30 * MINUTE_NS

    def __post_init__(self) -> None:
        if not 1 <= self.needed <= self.looks or not 0 <= self.recovery_margin < 1 or self.hold_ns < 0:
            raise ValueError(f"it takes 1 <= needed <= looks, a margin in [0, 1) and no negative hold: {self}")


NONE = Hysteresis(needed=1, looks=1, recovery_margin=0.0, hold_ns=0)
"""No hysteresis: the status of the present moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look: the status against the thresholds and against the raised ones, and whether there was no data.

    ``undecided``: the interval and the earlier evidence disagree. ``ruled_out`` is the mildest alarm whose threshold
    lies wholly below the interval, None where it reaches below both thresholds. ``is_below``: the interval lies wholly
    below the warning threshold, of however few verdicts it is.
    """

    status: Status
    with_margin: Status
    empty: bool = False
    undecided: bool = False
    ruled_out: Status | None = None
    is_below: bool = False

    @property
    def shows_otherwise(self) -> bool:
        """Whether a service with this look is not healthy."""
        return self.undecided or self.is_below or self.status in ALARMS


@dataclass(frozen=True, slots=True, kw_only=True)
class HysteresisState:
    """The status in force, its beginning (ns since the epoch), and the last looks, the latest last."""

    status: Status
    since_ns: int
    looks: tuple[Look, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The state that a restart needs."""
        return {
            "status": self.status.value, "since_ns": self.since_ns,
            "looks": [[look.status.value, look.with_margin.value, look.empty] for look in self.looks],
        }  # fmt: skip

    @classmethod
    def of_json(cls, record: JsonRecord) -> HysteresisState:
        """Read what ``to_json`` wrote."""
        looks = tuple(Look(status=Status(a), with_margin=Status(b), empty=bool(c)) for a, b, c in record["looks"])
        return cls(status=Status(record["status"]), since_ns=int(record["since_ns"]), looks=looks)


def step(held: HysteresisState | None, look: Look, now_ns: int, rule: Hysteresis) -> HysteresisState:
    """The status after one more look at ``now_ns``; ``held`` is ``None`` before the first."""
    if held is None:
        held = HysteresisState(status=Status.INSUFFICIENT_DATA, since_ns=now_ns)
    elif held.since_ns > now_ns:  # the clock was set back
        held = replace(held, since_ns=now_ns)
    looks = (*held.looks, look)[-rule.looks :]
    entered = _next(held, looks, now_ns, rule)
    if entered is held.status:
        return HysteresisState(status=held.status, since_ns=held.since_ns, looks=looks)
    return HysteresisState(status=entered, since_ns=now_ns, looks=looks)


def _next(held: HysteresisState, looks: tuple[Look, ...], now_ns: int, rule: Hysteresis) -> Status:
    if looks[-1].status is Status.NO_DATA:
        return Status.NO_DATA
    present = Status.INSUFFICIENT_DATA if held.status is Status.NO_DATA else held.status
    seen = [look.status for look in looks]
    too_little = seen.count(Status.INSUFFICIENT_DATA) == rule.looks
    if looks[-1].empty or (too_little and not (looks[-1].undecided and present in ALARMS)):
        return Status.INSUFFICIENT_DATA
    collapsed = seen.count(Status.CRITICAL)
    fallen = collapsed + seen.count(Status.WARNING)
    for worse, bad in ((Status.CRITICAL, collapsed), (Status.WARNING, fallen)):
        is_worse = present is Status.INSUFFICIENT_DATA or _SEVERITY[worse] > _SEVERITY[present]
        if bad >= rule.needed and is_worse and _SEVERITY.get(seen[-1], 0) >= _SEVERITY[worse]:
            return worse
    if (instead := contradicted(present, looks[-1])) is not None:
        return instead
    if present is Status.INSUFFICIENT_DATA:
        good = 0 if looks[-1].shows_otherwise else seen.count(Status.HEALTHY)
        sure = good >= rule.needed or (good and not fallen)
        return Status.HEALTHY if sure else present
    if present is Status.HEALTHY:
        return present
    recent = looks[-rule.needed :]
    if len(recent) < rule.needed or any(look.with_margin in UNKNOWN for look in recent):
        return present
    best = max((look.with_margin for look in recent), key=_SEVERITY.__getitem__)
    lasted = now_ns - held.since_ns >= rule.hold_ns
    return best if lasted and _SEVERITY[best] < _SEVERITY[present] else present


def contradicted(present: Status, look: Look) -> Status | None:
    """The next status where the look rules out the present one and no evidence supports it; None elsewhere."""
    if look.empty:
        return Status.INSUFFICIENT_DATA
    if present is Status.HEALTHY:
        return Status.INSUFFICIENT_DATA if look.shows_otherwise else None
    if present not in ALARMS:
        return None
    mildest = look.ruled_out
    if mildest is None or _SEVERITY[mildest] > _SEVERITY[present]:
        return None
    allowed = Status.WARNING if mildest is Status.CRITICAL else Status.HEALTHY
    if look.status is Status.INSUFFICIENT_DATA:
        return look.status
    found = max(look.status, allowed, key=_SEVERITY.__getitem__)
    return found if _SEVERITY[found] < _SEVERITY[present] else None
