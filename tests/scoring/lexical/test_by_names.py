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


def test_too_many_names_and_too_long_ones_are_answered_and_not_remembered() -> None:
    counted = Counted()
    answer = by_names(counted)
    many, long = tuple(map(str, range(257))), ("x" * 8193,)
    assert [answer(many), answer(many), answer(long), answer(long)] == ["/".join(many)] * 2 + [long[0]] * 2
    assert counted.times == 4


def test_ever_new_names_drive_out_what_was_remembered_and_no_more_is_held() -> None:
    counted = Counted()
    answer = by_names(counted)
    assert [answer((str(number),)) for number in range(513)] == [str(number) for number in range(513)]
    assert (answer(("0",)), counted.times) == ("0", 514)
    assert (answer(("512",)), counted.times) == ("512", 514)
