"""Hysteresis, told in letters: h, w, c and i are looks; the status after each is a letter too."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.status.hysteresis import NONE, Hysteresis, HysteresisState, Look, contradicted, step
from sidejudge.scoring.status.status import Status

LETTERS = {
    "h": Status.HEALTHY, "w": Status.WARNING, "c": Status.CRITICAL, "i": Status.INSUFFICIENT_DATA, "d": Status.NO_DATA,
}  # fmt: skip
NAMES = {status: letter for letter, status in LETTERS.items()}
RULE = Hysteresis(needed=2, looks=3, recovery_margin=0.02, hold_ns=0)


def look(letter: str) -> Look:
    """``n`` is no verdict at all, ``u`` undecided, ``b`` too few verdicts, which lie below the threshold all the same.

    ``H`` is healthy, and in warning against the raised threshold.
    """
    if letter == "n":
        return Look(status=Status.INSUFFICIENT_DATA, with_margin=Status.INSUFFICIENT_DATA, empty=True)
    if letter == "u":
        return Look(status=Status.INSUFFICIENT_DATA, with_margin=Status.INSUFFICIENT_DATA, undecided=True)
    if letter == "b":
        return Look(status=Status.INSUFFICIENT_DATA, with_margin=Status.INSUFFICIENT_DATA, is_below=True)
    if letter == "H":
        return Look(status=Status.HEALTHY, with_margin=Status.WARNING)
    return Look(status=LETTERS[letter], with_margin=LETTERS[letter])


def played(letters: str, rule: Hysteresis = RULE) -> str:
    held, reported = None, ""
    for minute, letter in enumerate(letters):
        held = step(held, look(letter), minute, rule)
        reported += NAMES[held.status]
    return reported


@pytest.mark.parametrize(
    ("looks", "reported"),
    [
        ("hhhh", "hhhh"),
        ("hwhhh", "hihhh"),  # one bad look is no alarm, and not healthy
        ("hwhw", "hihw"),  # two of three are
        ("hwww", "hiww"),
        ("hwcc", "hiwc"),  # critical looks count as warnings too
        ("hccc", "hicc"),
        ("hhwwhh", "hhiwwh"),  # back after two good looks
        ("hhwwHHHH", "hhiwwwww"),  # good only without the margin: not good enough to recover
        ("cchwhw", "iccwww"),  # from critical to warning when two looks are no worse than that
        ("iiih", "iiih"),  # the first sufficient look calls it healthy
        ("iww", "iiw"),
        ("iwhhh", "iiihh"),  # one bad look: now two good ones are needed
        ("hhihihih", "hhhhhhhh"),  # a sample about its minimum
        ("hhiii", "hhhhi"),  # too little for all of the looks
        ("hhn", "hhi"),  # silence is told at once
        ("hwwiii", "hiwwwi"),  # and is no recovery
        ("hwwnh", "hiwii"),  # nor is the first good look after it, while bad ones are remembered
        ("hhbbhh", "hhiihh"),  # nor is what lies below the threshold, of however few verdicts
        ("hhuu", "hhii"),  # what is undecided is not healthy
        ("hwwiiu", "hiwwww"),  # and no end of an alarm, however little there is to see,
        ("hwwuui", "hiwwwi"),  # as little alone is
        ("hhddh", "hhddh"),  # after traffic stopped, the first good look is enough
    ],
)
def test_stories(looks, reported):
    assert played(looks) == reported


def test_good_looks_before_a_silence_do_not_speak_against_a_bad_one_after_it():
    assert played("hhnw", Hysteresis(needed=2, looks=4, recovery_margin=0.02, hold_ns=0)) == "hhii"


def test_the_defaults_are_ten_looks_of_twelve_two_points_and_half_an_hour():
    stated = Hysteresis(needed=10, looks=12, recovery_margin=0.02, hold_ns=1_800_000_000_000)
    assert Hysteresis() == stated


def test_a_status_gets_better_only_once_it_has_lasted_and_gets_worse_at_once():
    rule = Hysteresis(needed=1, looks=1, recovery_margin=0.0, hold_ns=3)
    assert played("hwhhhhc", rule) == "hwwwhhc"


def test_after_a_clock_was_set_back_an_alarm_ends_once_it_has_lasted_and_not_when_that_time_comes_again():
    rule, held = Hysteresis(needed=2, looks=3, hold_ns=4), None
    for now_ns, letter in [(500, "w"), (501, "w"), (502, "w"), *enumerate("hhhhh", start=10)]:
        held = step(held, look(letter), now_ns, rule)
    assert (held.status, held.since_ns) == (Status.HEALTHY, 14)


@given(st.text("hwci", min_size=1, max_size=40))
def test_without_hysteresis_it_is_the_status_of_the_moment(letters):
    assert played(letters, NONE) == letters


@given(st.text("hwcinH", max_size=40), st.integers(0, 40))
def test_a_restart_changes_nothing(letters, at):
    held = None
    for minute, letter in enumerate(letters):
        held = step(held, look(letter), minute, RULE)
        if minute == at:
            held = HysteresisState.of_json(json.loads(json.dumps(held.to_json())))
    assert (NAMES[held.status] if held else "") == played(letters)[-1:]


@given(st.text("hwcin", min_size=1, max_size=60))
def test_it_never_alarms_on_fewer_looks_than_are_needed(letters):
    reported = played(letters)
    for minute, letter in enumerate(reported):
        if letter in "wc" and reported[max(0, minute - 1)] not in "wc":
            assert sum(each in "wc" for each in letters[max(0, minute - 2) : minute + 1]) >= 2


@pytest.mark.parametrize(
    "wrong",
    [{"needed": 0}, {"needed": 4, "looks": 3}, {"recovery_margin": 1.0}, {"recovery_margin": 1.5}, {"hold_ns": -1}],
)
def test_what_is_no_rule_is_refused(wrong):
    with pytest.raises(ValueError, match="it takes"):
        Hysteresis(**wrong)


@pytest.mark.parametrize(
    ("present", "now", "ruled_out", "instead"),
    [
        ("c", "i", "w", "i"), ("c", "h", "c", "w"), ("c", "h", "w", "h"), ("c", "w", "w", "w"), ("c", "c", "w", ""),
        ("w", "h", "w", "h"), ("w", "h", "c", ""), ("w", "h", "", ""), ("h", "w", "", "i"), ("h", "h", "", ""),
        ("i", "h", "w", ""),
    ],
)  # fmt: skip
def test_a_status_that_the_interval_rules_out_gives_way_to_the_worst_that_it_allows(present, now, ruled_out, instead):
    seen = Look(status=LETTERS[now], with_margin=LETTERS[now], ruled_out=LETTERS.get(ruled_out))
    assert contradicted(LETTERS[present], seen) is LETTERS.get(instead)
