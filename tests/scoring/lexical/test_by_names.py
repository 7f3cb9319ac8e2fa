"""What is remembered of names, which clients choose, is bounded, and never wrong."""

from __future__ import annotations

from sidejudge.scoring.lexical.memory import by_names


class Counted:
    """A function of names that counts how often it is worked out."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, names: tuple[str, ...]) -> str:
        self.times += 1
        return "/".join(names)


def test_the_same_names_are_worked_out_once_and_another_order_is_another_question() -> None:
    counted = Counted()
    answer = by_names(counted)
    assert [answer(("a", "b")), answer(("a", "b")), answer(("b", "a")), answer(())] == ["a/b", "a/b", "b/a", ""]
    assert counted.times == 3


def test_too_long_names_are_answered_and_not_remembered() -> None:
    counted = Counted()
    answer = by_names(counted)
    many, long, short = tuple(map(str, range(3000))), ("x" * 8193,), tuple(map(chr, range(0x4E00, 0x4E00 + 257)))
    for names in (many, long, short):  # short ones by their number: each takes the room of many characters
        assert [answer(names), answer(names)] == ["/".join(names)] * 2
    assert counted.times == 6


def test_ever_new_names_drive_out_what_is_not_in_use_and_no_more_is_held() -> None:
    counted = Counted()
    answer = by_names(counted)
    for number in range(10_000):
        assert answer((str(number),)) == str(number)
        assert answer(("in use",)) == "in use"
    assert counted.times == 10_001
    memory = answer.__self__
    assert len(memory) + len(memory._older) <= 2048
    assert (answer(("0",)), counted.times) == ("0", 10_002)


def test_names_in_use_stay_whatever_else_comes() -> None:
    """A memory that is emptied when it is full answers next to none of keys that come round in turns."""
    counted = Counted()
    answer = by_names(counted)
    for turn in range(20):
        for number in range(900):
            answer((str(number),))
        for number in range(100):
            answer((f"{turn}, {number}",))
    assert counted.times == 900 + 20 * 100


def test_long_names_take_the_room_of_many_short_ones() -> None:
    answer = by_names(Counted())
    for number in range(1000):
        answer((f"{number:08192}",))
    memory = answer.__self__
    assert len(memory) + len(memory._older) <= 256
