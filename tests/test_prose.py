"""Prose that people read (docstrings, comments, messages, Markdown) uses the words of the glossary, in short sentences.

No prose linter serves here: vale's wheel fetches its binary when it runs, proselint and write-good know no words of
one's own. What a person of a transcript says, and the reasons of verdicts, which never change, keep their words.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("scoring", "integrations", "monitor", "dashboards", "sidejudge")
MOST_WORDS = 40
INSTEAD = {
    "told, tell, tells, telling": "report, record, return, show: the exact verb",
    "said, saying": "state, write",
    "hear, hears, heard": "receive, take",
    "docket": "judge queue",
    "hearing": "evaluation",
    "jury, juries": "panel",
    "courier": "dispatcher",
    "mail": "notification outbox",
    "ledger": "outcomes",
    "belated": "late",
    "standing, standings": "status, snapshot",
    "story, stories": "trace explanation, trace detail",
    "suspicion, suspicions": "anomaly",
    "answerers": "evaluators",
    "witness": "transcript index",
    "rhythm": "adaptive idle timeout",
    "sieve": "head sampler",
}
OLD = {word: instead for words, instead in INSTEAD.items() for word in words.split(", ")}
WORDS = re.compile(rf"(?<!e-)\b({'|'.join(OLD)})\b", re.IGNORECASE)
KEPT = {
    "scoring/lexical": "what people say in a transcript, and lists of their words",
    "scoring/evaluators": "reasons of verdicts stay byte for byte",
    "scoring/prompts": "the exact prompts of the seeds",
}
GENERATED = re.compile(r"(MATCHED|METRICS|RUBRICS|FAMILIES|CONFIG)\.md$")


def tracked(pattern: str) -> list[str]:
    """Files of this checkout, or of an unpacked archive, that the product or its documentation consists of."""
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    found = listed.splitlines() or [str(path.relative_to(ROOT)) for path in ROOT.rglob(pattern)]
    return [name for name in found if not name.startswith((".", "tests/")) and (ROOT / name).is_file()]


SOURCES = [name for name in tracked("*.py") if name.split("/")[0] in PACKAGES]
PAGES = [name for name in tracked("*.md") if not GENERATED.search(name)]
"""Of the pages that are generated the declarations are read."""


@cache
def texts(name: str) -> list[ast.Constant | ast.Expr]:
    """The strings of a file, and its expressions that are statements, parsed once for all tests."""
    return [
        node for node in ast.walk(ast.parse((ROOT / name).read_text())) if isinstance(node, ast.Constant | ast.Expr)
    ]


def is_message(text: str) -> bool:
    """Whether a string is prose for people, not a key, a query or a name."""
    return len(text.split()) > 3 and not re.search(r"\b(SELECT|INSERT|DELETE|UPDATE)\b|^\s*<", text)


def of_python(name: str) -> Iterator[tuple[int, str]]:
    """The docstrings, comments and messages of a file, each with its line."""
    for node in texts(name):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_message(node.value):
            yield node.lineno, re.sub(r"^\s*(>>>|\.\.\.).*(\n(?!\s*\n).*)*", "", node.value, flags=re.MULTILINE)
    for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1):
        if comment := re.search(r"(?:^|\s)# .*", line):
            yield number, comment[0]


def of_markdown(name: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside of blocks of code."""
    fenced = False
    for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced:
            yield number, line


def old_words(text: str) -> list[str]:
    """The replaced words in a text; names in back quotes, addresses and options keep theirs."""
    return WORDS.findall(re.sub(r"`[^`]*`|\(\S+\.md\S*\)|https?://\S+|--\S+|\{[^}]*\}", "", text))


def faults(name: str, prose: Iterator[tuple[int, str]]) -> list[str]:
    """Where a file uses a replaced word, and what to write instead."""
    if name.startswith(tuple(KEPT)):
        return []
    return [
        f"{name}:{line}: {word!r}: {OLD[word.lower()]}"
        for line, text in prose
        for word in dict.fromkeys(old_words(text))
    ]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a docstring; lists, tables, formulas, examples and code are none."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.splitlines()]
        if any(line.startswith((">>>", "-", "|", "=", "*")) or line.endswith("::") or "  " in line for line in lines):
            continue
        yield from re.split(r"(?<=[.!?;:])\s+", re.sub(r"``[^`]*``", "X", paragraph))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What the spans tell is told once.", ["tell", "told"]),
        ("The Ledger of `ledger` reasons", ["Ledger"]),
        ("Outcomes are counted; a foretold retelling is not a word of the list.", []),
        ("see [the story](story.md)", ["story"]),
    ],
)
def test_a_replaced_word_is_found(text: str, words: list[str]) -> None:
    assert old_words(text) == words


def test_code_uses_the_words_of_the_glossary() -> None:
    assert SOURCES
    assert [fault for name in SOURCES for fault in faults(name, of_python(name))] == []


def test_pages_use_the_words_of_the_glossary() -> None:
    assert PAGES
    assert [fault for name in PAGES for fault in faults(name, of_markdown(name))] == []


@pytest.mark.parametrize("name", KEPT)
def test_where_old_words_are_kept_there_are_some(name: str) -> None:
    files = [each for each in (*SOURCES, *PAGES) if each.startswith(name)]
    prose = (text for each in files for _, text in (of_python if each.endswith(".py") else of_markdown)(each))
    assert any(old_words(text) for text in prose), "nothing needs this exception any more"


def test_a_long_sentence_is_seen() -> None:
    assert max(len(each.split()) for each in sentences("word " * 41 + "end. Short.")) > MOST_WORDS


def test_sentences_of_docstrings_are_short() -> None:
    long = [
        f"{name}:{node.lineno}: {len(sentence.split())} words: {sentence[:60]}"
        for name in SOURCES
        for node in texts(name)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for sentence in sentences(node.value.value)
        if len(sentence.split()) > MOST_WORDS
    ]
    assert long == []
