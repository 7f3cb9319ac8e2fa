"""Append: one more test at the end of a test set's file; what stands there, comments included, stays as it is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from sidejudge.scoring.trace.span import Json

from .test_file import read_test_set

_ITEM = re.compile(r"^( *)- ", re.MULTILINE)
_OWNER_ONLY = 0o600


def append_test(path: Path, test: Mapping[str, Json], scenarios: Iterable[str]) -> int:
    """Write the test behind those of the file, which is made where there is none, readable by its owner alone.

    The file is replaced as a whole, after the new one was read as a test set: what is wrong leaves it untouched.

    Args:
        path: ends with ``.yaml``, ``.yml``, ``.json``, ``.jsonl`` or ``.ndjson``.
        test: as a line of a test set.
        scenarios: names that are known.

    Returns:
        The number of tests.

    Raises:
        TestSetError: The file is no test set, or would be none with this test.
    """
    before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    mode = path.stat().st_mode & 0o777 if path.exists() else _OWNER_ONLY
    if before:
        read_test_set(path, scenarios)
    text = _with(before, test, path)
    fresh = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
        found = read_test_set(fresh, scenarios)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return len(found.tests)


def _with(before: str, test: Mapping[str, Json], path: Path) -> str:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return before.rstrip("\n") + ("\n" if before else "") + json.dumps(test, ensure_ascii=False) + "\n"
    if path.suffix.lower() == ".json":
        whole = json.loads(before) if before else {"name": path.stem, "tests": []}
        return json.dumps({**whole, "tests": [*whole["tests"], test]}, ensure_ascii=False, indent=2) + "\n"
    head = before.rstrip("\n") if before else f"name: {path.stem}\ntests:"
    indents = _ITEM.findall(head.partition("\ntests:")[2] if not head.startswith("tests:") else head)
    indent = min(indents, key=len, default="  ")
    lines = yaml.safe_dump([dict(test)], sort_keys=False, allow_unicode=True, width=110).splitlines()
    return "\n".join([head, *(indent + line for line in lines)]) + "\n"
