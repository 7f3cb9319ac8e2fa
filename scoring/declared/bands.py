"""Bands and blockers of a declared metric, and the map from its values to the part of a composite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sidejudge.scoring.result.result import Bands, Blocker, Effect, at_least, at_most

from .reading import DeclarationError, Reading, as_number

_EFFECTS: Final[Mapping[str, Effect]] = {"disqualify": Effect.DISQUALIFIED, "invalidate": Effect.INVALID}


def new_bands(reading: Reading, known: Bands | None, *, more_is_better: bool = True) -> Bands | None:
    """Bands of ``good`` and ``acceptable``; lower values are better where ``good`` is the lower of the two.

    Which side is better does not change where bands are ``known``.
    """
    good, acceptable = reading.number("good"), reading.number("acceptable")
    if good is None and acceptable is None:
        return known
    if known is not None and good is None:
        good = known.good
    if known is not None and acceptable is None:
        acceptable = known.acceptable
    high = good if good is not None else acceptable
    low = acceptable if acceptable is not None else good
    assert high is not None and low is not None  # noqa: S101, PT018  # one of them was given
    better = known.higher_is_better if known is not None else more_is_better
    if known is not None and high != low and better != (high > low):
        sides = ("higher", "lower") if better else ("lower", "higher")
        reading.complain(
            f"of this metric {sides[0]} values are better; with good at {high:g} and acceptable at {low:g} {sides[1]} "
            "ones would be",
            "acceptable" if reading.has("acceptable") else "good",
        )
    elif high != low:
        better = high > low
    return at_least(good=high, acceptable=low) if better else at_most(good=high, acceptable=low)


def within(reading: Reading, bounds: tuple[float, float | None]) -> None:
    """Note a band or blocker that begins at a value that the metric never has: it would always hold, or never."""
    low, high = bounds
    blocker = reading.given.get("blocker")
    named: list[tuple[tuple[str, ...], object]] = [
        ((name,), reading.given.get(name)) for name in ("good", "acceptable")
    ]
    if isinstance(blocker, dict):
        named += [(("blocker", name), blocker.get(name)) for name in ("below", "above")]
    for path, given in named:
        value = as_number(given)
        if value is not None and not (low <= value and (high is None or value <= high)):
            span = f"of at least {low:g}" if high is None else f"from {low:g} to {high:g}"
            reading.complain(f"{value:g} is no value of this metric; its values are {span}", *path)


def read_blocker(reading: Reading, bands: Bands | None, *, binary: bool) -> Blocker | None:
    """The blocker that is declared: below 1, beyond the acceptable band, or with a bound of its own."""
    given = reading.given.get("blocker")
    if given is None:
        return None
    if isinstance(given, dict):
        inner = Reading(given, ("effect", "below", "above"))
        effect, below, above = (
            inner.one_of("effect", tuple(_EFFECTS), "disqualify"),
            inner.number("below"),
            inner.number("above"),
        )
        if below is None and above is None:
            inner.complain("must name below or above")
        reading.take(DeclarationError(inner.faults), "blocker")
        return Blocker(effect=_EFFECTS[effect], below=below, above=above)
    if not isinstance(given, str) or given not in _EFFECTS:
        reading.complain(f"must be {' or '.join(_EFFECTS)}, or a map with effect and below or above", "blocker")
        return None
    if binary:
        return Blocker(effect=_EFFECTS[given], below=1.0)
    if bands is None:
        reading.complain(
            "needs acceptable, or a map with below or above: from which value on does it block?", "blocker"
        )
        return None
    if bands.higher_is_better:
        return Blocker(effect=_EFFECTS[given], below=bands.acceptable)
    return Blocker(effect=_EFFECTS[given], above=bands.acceptable)


def component(bounds: tuple[float, float | None], *, higher: bool) -> Callable[[float], float]:
    """Map a value within bounds to [0, 1], where 1 is the better end; values beyond the bounds are clipped."""
    low, high = bounds[0], bounds[1] if bounds[1] is not None else bounds[0] + 1
    width = high - low
    if higher:
        return lambda value: min(1.0, max(0.0, (value - low) / width))
    return lambda value: min(1.0, max(0.0, (high - value) / width))
