"""Write: fitted thresholds into a configuration file, whose other lines and comments stay as they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from sidejudge.scoring.errors import SidejudgeError


class NotWrittenError(SidejudgeError):
    """The thresholds could not be written; the message is the reason, and the file is as it was."""


def write_thresholds(path: Path, thresholds: Mapping[str, float], check: Callable[[Path], object]) -> None:
    """Write ``evaluators.embedding.thresholds`` into a file, in place of what stands there.

    Args:
        path: a configuration with the section ``evaluators.embedding``.
        thresholds: by name.
        check: reads the new file as a configuration; what it raises leaves the old one in place.

    Raises:
        NotWrittenError: The section is not in this file, or not as a mapping of its own.
    """
    text = path.read_text(encoding="utf-8")
    section = _mapping(_mapping(yaml.compose(text, Loader=yaml.SafeLoader), "evaluators"), "embedding")
    if section is None or not section.value:
        raise NotWrittenError(f"{path} has no section evaluators.embedding")
    stated = "thresholds: {" + ", ".join(f"{name}: {value:g}" for name, value in thresholds.items()) + "}"
    fresh = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        fresh.write_text(_with(text, section, stated), encoding="utf-8")
        fresh.chmod(path.stat().st_mode & 0o777)
        check(fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _with(text: str, section: yaml.MappingNode, stated: str) -> str:
    known = next((pair for pair in section.value if pair[0].value == "thresholds"), None)
    if known is not None:
        return text[: known[0].start_mark.index] + stated + text[_end(known[1]) :]
    first = section.value[0][0].start_mark
    if section.flow_style:
        return f"{text[: first.index]}{stated}, {text[first.index :]}"
    return f"{text[: first.index]}{stated}\n{' ' * first.column}{text[first.index :]}"


def _end(node: yaml.Node) -> int:
    """Where a value ends; a block's own mark stands behind the comments that follow it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    return int(node.end_mark.index)


def _mapping(node: yaml.Node | None, key: str) -> yaml.MappingNode | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    found = next((value for name, value in node.value if name.value == key), None)
    return found if isinstance(found, yaml.MappingNode) else None
