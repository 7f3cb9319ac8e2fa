"""Recordings as an unknown client would have sent them: every dialect is left out, every prefix another word.

    SIDEJUDGE_SHARED=FOLDER python -m tests.conformance.left_out [CLIENT ...]

Prints what the reader by shape reads right, leaves out and reads wrong of what the programs did. A prefix is the first
part of an attribute's or an event's name (``gen_ai``, ``llm``, ``langfuse``); plain words for what a thing is
(``input.value``, ``session.id``) are none. Names of scopes are another word too.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TypeVar

from msgspec.structs import replace
from rich.console import Console

from sidejudge.integrations.dialects import GENERIC, normalise
from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.trace.trace import Trace
from tests.conformance.test_dialects import RECORDED, UNOBTAINABLE, _compared, _manifest

Value = TypeVar("Value")

PLAIN = frozenset({
    "input", "output", "session", "user", "tool", "agent", "metadata", "tag", "tags", "error", "exception", "service",
    "deployment", "http", "url", "server", "net", "code", "span", "event", "conversation", "prompt", "response",
    "model", "messages", "tool_call", "graph", "retrieval", "embedding", "reranker", "document", "turn", "usage",
    "enduser",
})  # fmt: skip
"""First parts of names that are words of any client, not the name of one."""
SPOKEN = re.compile(r"([A-Za-z_0-9-]+)([.:])(.+)")


class Renaming:
    """One random word for each prefix, the same in all of a recording."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._words: dict[str, str] = {}

    def span(self, raw: RawSpan) -> RawSpan:
        """The span of an unknown client."""
        return replace(
            raw, attributes=self._all(raw.attributes), scope_name=self._word(raw.scope_name),
            events=tuple(map(self._event, raw.events)),
        )  # fmt: skip

    def _event(self, event: RawEvent) -> RawEvent:
        return replace(event, name=self._name(event.name), attributes=self._all(event.attributes))

    def _all(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {self._name(key): value for key, value in attributes.items()}

    def _name(self, name: str) -> str:
        parts = SPOKEN.fullmatch(name)
        if parts is None or parts[1] in PLAIN:
            return name
        return f"{self._word(parts[1])}{parts[2]}{parts[3]}"

    def _word(self, prefix: str) -> str:
        if prefix not in self._words:
            self._words[prefix] = "".join(self._random.choices("bcdfghjklmnpqrstvwxz", k=6))
        return self._words[prefix]


def cases(folder: Path) -> list[Case]:
    """The cases of a recording, read by shape alone, in the order of its manifest."""
    renaming = Renaming("/".join(folder.parts[-2:]))
    spans: dict[str, list[RawSpan]] = {}
    for raw in read_files(sorted(folder.glob("*.pb"))).spans:
        spans.setdefault(raw.trace_id, []).append(renaming.span(raw))
    order = [trace["trace_id"] for trace in _manifest(folder)["traces"]]
    return [
        extract(Trace.of(key, [normalise(raw, dialects=(GENERIC,)) for raw in spans[key]], "batch"))
        for key in order if key in spans
    ]  # fmt: skip


def judged(folder: Path) -> Iterator[tuple[str, str, object, object]]:
    """Each fact: what it is, whether it is ``right``, ``wrong`` or ``missing``, what was found, what is true."""
    found = cases(folder)
    try:
        compared = _compared(folder, found)
    except IndexError:  # no case says anything
        compared = {}
    excused = {what for client, scenario, what in UNOBTAINABLE if (client, scenario) == folder.parts[-2:]}
    for what, (read, wanted) in compared.items():
        if what not in excused:
            yield what, _grade(read, wanted, folder), read, wanted


def _requested(folder: Path) -> object:
    return _manifest(folder)["truth"]["model_requested"]


def _grade(read: object, wanted: object, folder: Path) -> str:
    if read == wanted or (isinstance(wanted, int) and read == str(wanted)):  # a number that was sent as a text
        return "right"
    if isinstance(read, tuple):
        return "missing" if read == (0, 0) else "wrong"
    if read == {_requested(folder)}:  # the requested model, where which one answered was not read
        return "missing"
    if isinstance(read, list | set):
        truth = wanted if isinstance(wanted, list | set) else [wanted]
        return "missing" if all(item is None or item in truth for item in read) else "wrong"
    return "missing" if read is None else "wrong"


def main() -> None:
    """Print the facts that were not read right, and the sums."""
    console = Console(soft_wrap=True, highlight=False, markup=False)
    corpus = Path(os.environ.get("SIDEJUDGE_SHARED", Path(__file__).parents[3] / "shared")) / "corpus" / "otlp"
    total: Counter[str] = Counter()
    for client in sys.argv[1:] or dict.fromkeys(name for name, _ in RECORDED):
        counted: Counter[str] = Counter()
        for _, scenario in (pair for pair in RECORDED if pair[0] == client):
            for what, grade, read, wanted in judged(corpus / client / scenario):
                counted[grade] += 1
                if grade == "wrong" or (grade == "missing" and len(sys.argv) > 1):
                    console.print(f"  {scenario} {grade} {what}: {str(read)[:200]!r} for {str(wanted)[:100]!r}")
        console.print(client, dict(counted))
        total += counted
    console.print("all", {grade: f"{count} ({count / total.total():.2%})" for grade, count in total.items()})


if __name__ == "__main__":
    main()
