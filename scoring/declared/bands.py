"""What the values of a declared metric mean: bands, blockers, the part of a composite, and anchors for its question.

Anchors are declared or derived from the bands. Without an explanation of its ends, each judge reads a scale
differently: for one 1 is the best, another never gives less than 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from sidejudge.scoring.questions.kinds import AnswerKind
from sidejudge.scoring.result.result import Bands, Blocker, Effect, at_least, at_most

from .reading import MAX_TEXT, DeclarationError, Reading, as_number, is_number, is_text

Anchors: TypeAlias = tuple[tuple[str, str], ...]
"""(value as the judge reads it, its meaning), ascending."""
_BEST: Final = "the best"
_WORST: Final = "the worst"
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


def read_anchors(reading: Reading, kind: AnswerKind, choices: Sequence[str | float]) -> Anchors:
    """The anchors of a question; by default both ends, ``good`` and ``acceptable``.

    A mistake is noted in ``reading``.
    """
    given = reading.given.get("anchors")
    if given is not None and (not isinstance(given, dict) or not given or not all(map(is_text, given.values()))):
        reading.complain(
            "must be a map from values to their meanings, such as {1: insulting, 5: very friendly}", "anchors"
        )
        return ()
    declared = {str(at): str(meaning) for at, meaning in (given or {}).items()}
    if sum(map(len, declared.values())) > MAX_TEXT:
        reading.complain(f"are longer than {MAX_TEXT} characters together", "anchors")
    if kind == "one_of":
        for name in declared:
            if name not in choices:
                reading.complain(f"{name[:40]!r} is no category; valid here: {', '.join(map(str, choices))}", "anchors")
        return tuple(declared.items())
    if kind not in ("scale", "number") or not choices:
        if declared:
            reading.complain("belong to a scale, to categories, or to a number with both ends", "anchors")
        return ()
    found = _implied(reading, float(choices[0]), float(choices[1]))
    for at, meaning in declared.items():
        value = _number(at)
        if value is None or not float(choices[0]) <= value <= float(choices[1]):
            reading.complain(f"{at[:40]!r} is no value from {choices[0]:g} to {choices[1]:g}", "anchors")
        else:
            found[value] = meaning
    return tuple((f"{value:g}", meaning) for value, meaning in sorted(found.items()))


def _implied(reading: Reading, low: float, high: float) -> dict[float, str]:
    """The meanings of the ends and of the bands' beginnings; without bands and weight the most is no better."""
    bands = {name: as_number(reading.given.get(name)) for name in ("good", "acceptable")}
    known = {name: value for name, value in bands.items() if value is not None}
    if not known and not is_number(reading.given.get("weight")):
        return {low: "the least", high: "the most"}
    falling = len(known) == 2 and known["good"] < known["acceptable"]
    found = {low: _BEST if falling else _WORST, high: _WORST if falling else _BEST}
    side = "up to here" if falling else "from here on"
    for name in ("acceptable", "good"):
        if name in known and low <= known[name] <= high:
            band = f"{name} {side}"
            here = found.get(known[name])
            found[known[name]] = band if here is None else f"{here}; {band}"
    return found


def _number(text: str) -> float | None:
    try:
        return as_number(float(text))
    except ValueError:
        return None
