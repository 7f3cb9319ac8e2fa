from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, field

from sidejudge.scoring.statistics.sums import ExactSum, FewCounts, FirstFew, OfParts


@dataclass(slots=True)
class Seen(OfParts):
    by: str
    n: int = 0
    total: ExactSum = field(default_factory=ExactSum)
    words: Counter[str] = field(default_factory=Counter)
    letters: set[str] = field(default_factory=set)
    first: FirstFew[str] = field(default_factory=lambda: FirstFew(2))
    few: FewCounts[str] = field(default_factory=lambda: FewCounts(2, rest="…"))
    below: dict[str, Seen] = field(default_factory=dict)

    def take(self, text: str) -> Seen:
        for word in text.split():
            self.n += 1
            self.total.add(len(word) / 10)
            self.words[word] += 1
            self.letters |= set(word)
            self.first.keep(word)
            self.few.count(word)
            self.below.setdefault(word[0], Seen(self.by))
            self.below[word[0]].n += 1
        return self


def part() -> Seen:
    return Seen("word", few=FewCounts(float("inf")))


def test_the_sums_of_parts_are_those_of_the_whole() -> None:
    merged = Seen("word").take("one two one")
    for text in ("three one", "", "two four four"):
        merged.merge(pickle.loads(pickle.dumps(part().take(text))))
    whole = Seen("word").take("one two one three one two four four")
    assert merged.total.value == whole.total.value
    for name in ("by", "n", "words", "letters", "first", "few"):
        assert getattr(merged, name) == getattr(whole, name), name
    assert {name: each.n for name, each in merged.below.items()} == {name: each.n for name, each in whole.below.items()}
    assert list(merged.first) == ["one", "two"]
    assert merged.few == {"one": 3, "two": 2, "…": 3}


def test_what_has_no_rest_is_not_counted() -> None:
    counts = FewCounts[str](1)
    counts.count("a")
    counts.count("b")
    assert counts == {"a": 1}
