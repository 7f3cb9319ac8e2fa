"""Ready rubrics as data: files that are copied and changed, each with its source and labelled examples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from sidejudge.monitor.config.document import read_document
from sidejudge.scoring.trace.span import Json, JsonRecord

EXPECT = "expect"
"""The key of an example with the expected value of each metric."""
_SOURCE = "# Source: "


@dataclass(frozen=True, slots=True)
class ReadyRubric:
    """One file of the library. ``examples`` are cases with the expected value of each metric, under ``expect``.

    Expected is true or false where a metric is 1 or 0, else the least and the greatest value that would be right.
    """

    name: str
    text: str
    source: str
    declared: Mapping[str, Json]
    examples: tuple[JsonRecord, ...]

    @property
    def title(self) -> str:
        return str(self.declared.get("title"))


def library() -> dict[str, ReadyRubric]:
    """All ready rubrics by name, in alphabetical order."""
    folder = files(__name__)
    names = sorted(each.name.removesuffix(".yaml") for each in folder.iterdir() if each.name.endswith(".yaml"))
    return {name: _read(name) for name in names}


def _read(name: str) -> ReadyRubric:
    folder = files(__name__)
    text = folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    value = read_document(text, None, name).value
    declared = value.get(name) if isinstance(value, dict) else None
    source = next(line.removeprefix(_SOURCE) for line in text.splitlines() if line.startswith(_SOURCE))
    examples = folder.joinpath(f"{name}.examples.jsonl").read_text(encoding="utf-8").splitlines()
    return ReadyRubric(
        name=name,
        text=text,
        source=source,
        declared=declared if isinstance(declared, dict) else {},
        examples=tuple(map(json.loads, examples)),
    )
