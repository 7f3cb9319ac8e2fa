r"""Regular expressions that cannot hang: a subset of Python's, matched in time proportional to pattern times text.

Python's ``re`` backtracks, and ``(a+)+$`` on thirty letters already takes minutes; both the pattern (an inline
scenario) and the text (a tool's argument) may come from outside. Here all ways to match advance together (Thompson).

Supported: literals, ``.``, classes, ``\d \w \s \D \W \S``, ``\b \B ^ $``, groups, ``|``, ``* + ? {m,n}`` and a
leading ``(?i)``. Refused when read: look-around, back-references, other flags. A pattern is searched for anywhere in
the text, as in JSON Schema; anchor it with ``^…$``. Texts longer than ``MAX_TEXT`` characters match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

MAX_TEXT = 4096
MAX_PATTERN = 1000
MAX_STATES = 1000
_MAX_DEPTH = 50
_BRACES = re.compile(r"\{(\d{0,4})(,(\d{0,4}))?\}")

_Node: TypeAlias = "tuple[Any, ...]"
"""A node of the tree or a step of the program, by its first item:

``("char", test)``, ``("at", test)``, ``("cat", nodes)``, ``("alt", nodes)``, ``("rep", node, low, high)``;
in a program also ``("go", states)`` and ``("end",)``.
"""


class PatternError(ValueError):
    """The pattern is malformed, too large, or uses what is not supported."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern; build it with ``compile_pattern``."""

    source: str
    program: tuple[_Node, ...] = field(repr=False, compare=False, hash=False)

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text; never for a text over ``MAX_TEXT`` characters."""
        if len(text) > MAX_TEXT:
            return False
        waiting: set[int] = set()
        for at in range(len(text) + 1):
            ready = self._reach({*waiting, 0}, text, at)
            if ready is None:
                return True
            waiting = {state + 1 for state in ready if at < len(text) and self.program[state][1](text[at])}
        return False

    def _reach(self, states: set[int], text: str, at: int) -> list[int] | None:
        """States that wait for a character, from ``states`` without consuming any; None when one is the end."""
        seen: set[int] = set()
        todo = list(states)
        ready: list[int] = []
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            step = self.program[state]
            if step[0] == "end":
                return None
            if step[0] == "char":
                ready.append(state)
            elif step[0] == "go":
                todo.extend(step[1])
            elif step[1](text, at):
                todo.append(state + 1)
        return ready


@lru_cache(maxsize=256)
def compile_pattern(source: str) -> Pattern:
    """Read a pattern; ``PatternError`` says what is wrong or not supported.

    >>> compile_pattern("^ORD-[0-9]{4}$").search("ORD-9987")
    True
    """
    if len(source) > MAX_PATTERN:
        raise PatternError(f"longer than {MAX_PATTERN} characters")
    ignore_case = source.startswith("(?i)")
    tree = _Parser(source[4:] if ignore_case else source, re.IGNORECASE if ignore_case else re.NOFLAG).parse()
    if _size(tree) > MAX_STATES:
        raise PatternError(f"needs more than {MAX_STATES} states; use smaller repeat counts")
    program: list[_Node] = []
    _emit(tree, program)
    return Pattern(source, (*program, ("end",)))


class _Parser:
    def __init__(self, source: str, flags: re.RegexFlag) -> None:
        self._source, self._flags, self._at, self._depth = source, flags, 0, 0

    def parse(self) -> _Node:
        tree = self._alternatives()
        if self._at < len(self._source):
            raise PatternError(f"unbalanced ) at position {self._at}")
        return tree

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _take(self) -> str:
        taken = self._peek()
        if not taken:
            raise PatternError("ends too early")
        self._at += 1
        return taken

    def _alternatives(self) -> _Node:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._take()
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else ("alt", branches)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return ("cat", parts)

    def _repeated(self, atom: _Node) -> _Node:
        bounds = self._bounds()
        if bounds is None:
            return atom
        if atom[0] == "at":
            raise PatternError(f"nothing to repeat before position {self._at}")
        if self._peek() == "?":
            self._take()  # lazy: the same texts match
        if self._peek() and self._peek() in "*+?":
            raise PatternError(f"multiple repeat at position {self._at}")
        return ("rep", atom, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._peek() and self._peek() in "*+?":
            return simple[self._take()]
        braces = _BRACES.match(self._source, self._at)
        if braces is None:
            return None
        if not braces[1]:
            raise PatternError(f"{braces[0]}: write the lower bound, such as {{0,3}}")
        self._at = braces.end()
        low = int(braces[1])
        high = low if braces[2] is None else int(braces[3]) if braces[3] else None
        if high is not None and high < low:
            raise PatternError(f"{braces[0]}: the upper bound is below the lower")
        return low, high

    def _atom(self) -> _Node:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character in "*+?":
            raise PatternError(f"nothing to repeat at position {self._at - 1}")
        if character == "^":
            return ("at", lambda _, at: at == 0)
        if character == "$":
            return ("at", lambda text, at: at == len(text))
        return self._char("." if character == "." else re.escape(character))

    def _group(self) -> _Node:
        if self._peek() == "?":
            self._take()
            if self._take() != ":":
                raise PatternError("(?…) other than (?:…) and a leading (?i) is not supported")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise PatternError(f"groups nest deeper than {_MAX_DEPTH}")
        tree = self._alternatives()
        if self._peek() != ")":
            raise PatternError("a ( is not closed")
        self._take()
        self._depth -= 1
        return ("cat", [tree])

    def _class(self) -> _Node:
        parts = ["["]
        if self._peek() == "^":
            parts.append(self._take())
        first = True
        while first or self._peek() != "]":
            character = self._take()
            if character == "\\":
                character += self._take()
            elif character in "[&|~]":
                character = "\\" + character
            elif character == "-" and self._peek() == "-":
                raise PatternError("write \\- for a literal - in a class")
            parts.append(character)
            first = False
        self._take()
        return self._char("".join(parts) + "]")

    def _escape(self) -> _Node:
        character = self._take()
        if character in "bB":
            return ("at", _boundary if character == "b" else lambda text, at: not _boundary(text, at))
        if character.isalnum() and character not in "dDwWsSntrfv":
            raise PatternError(f"\\{character} is not supported")
        return self._char("\\" + character)

    def _char(self, fragment: str) -> _Node:
        try:
            return ("char", _one(fragment, self._flags))
        except re.error as error:
            raise PatternError(f"{fragment}: {error.msg}") from None


@lru_cache(maxsize=1024)
def _one(fragment: str, flags: re.RegexFlag) -> Callable[[str], object]:
    """A test of one character. On one character ``re`` cannot backtrack."""
    return re.compile(fragment, flags).fullmatch


def _boundary(text: str, at: int) -> bool:
    before = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
    after = at < len(text) and (text[at].isalnum() or text[at] == "_")
    return before != after


def _size(node: _Node) -> int:
    match node[0]:
        case "cat":
            return sum(map(_size, node[1]))
        case "alt":
            return sum(map(_size, node[1])) + 2 * len(node[1])
        case "rep":
            most: int = max(node[2] + 1 if node[3] is None else node[3], 1)
            return (_size(node[1]) + 1) * most + 2
    return 1


def _emit(node: _Node, program: list[_Node]) -> None:
    match node[0]:
        case "cat":
            for part in node[1]:
                _emit(part, program)
        case "alt":
            _emit_branches(node[1], program)
        case "rep":
            _emit_repeat(node[1], node[2], node[3], program)
        case _:
            program.append(node)


def _emit_branches(branches: list[_Node], program: list[_Node]) -> None:
    fork: list[int] = []
    ends: list[list[int]] = []
    program.append(("go", fork))
    for branch in branches:
        fork.append(len(program))
        _emit(branch, program)
        ends.append([])
        program.append(("go", ends[-1]))
    for end in ends:
        end.append(len(program))


def _emit_repeat(node: _Node, low: int, high: int | None, program: list[_Node]) -> None:
    for _ in range(low):
        _emit(node, program)
    if high is None:
        fork = [len(program) + 1]
        at = len(program)
        program.append(("go", fork))
        _emit(node, program)
        program.append(("go", [at]))
        fork.append(len(program))
        return
    skips: list[list[int]] = []
    for _ in range(high - low):
        skips.append([len(program) + 1])
        program.append(("go", skips[-1]))
        _emit(node, program)
    for skip in skips:
        skip.append(len(program))
