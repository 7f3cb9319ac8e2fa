"""What is remembered of texts is bounded whoever wrote them: characters and definitions of tools without end."""

from __future__ import annotations

import json
import sys
import tracemalloc

import pytest

from sidejudge.scoring.judging.layout import fence
from sidejudge.scoring.lexical.memory import MOST, CodePoints, by_text
from sidejudge.scoring.lexical.text import fold_digits, tokens
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.metrics import run_offered_tools

EVERY = [code for code in range(0, sys.maxunicode + 1, 10) if not 0xD800 <= code < 0xE000]
"""A tenth of all characters, which is 13 tables full."""
MIB = 1 << 20


def grown(work) -> int:
    """Bytes that are held after ``work`` and were not before it."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("read", [fold_digits, tokens, estimate, lambda text: fence("x", text)])
def test_characters_without_end_leave_little_behind(read):
    def work() -> None:
        for begin in range(0, len(EVERY), 8192):
            read("".join(map(chr, EVERY[begin : begin + 8192])))
        for n in range(10):  # what is kept of the latest texts themselves goes with the next ones
            read(f"é{n}")

    assert grown(work) < MOST * 200 + MIB


def test_a_table_that_has_begun_anew_answers_the_same():
    table = CodePoints(lambda code: code + 1)
    text = "".join(map(chr, EVERY[:20_000]))
    assert text.translate(table) == "".join(chr(code + 1) for code in EVERY[:20_000])
    assert len(table) <= MOST


def test_definitions_of_tools_without_end_leave_little_behind():
    def work() -> None:
        for n in range(25):
            properties = {f"p{n}_{i}": {"type": "string"} for i in range(1500)}
            tool = {"name": f"t{n}", "parameters": {"type": "object", "properties": properties}}
            (offered,) = run_offered_tools._known(json.dumps([tool])).values()
            assert run_offered_tools._validator(offered.schema) is not None

    assert grown(work) < 4 * run_offered_tools.REMEMBERED


def test_a_memory_of_texts_keeps_those_in_use_and_no_more_than_it_may():
    asked = []
    memory = by_text(lambda text: asked.append(text) or text.upper(), 6)
    for text in ("aa", "bb", "aa", "cc", "dd", "aa", "ee", "ff", "aa", "bb", "too long", "too long"):
        assert memory(text) == text.upper()
    assert asked == ["aa", "bb", "cc", "dd", "ee", "ff", "bb", "too long", "too long"]
