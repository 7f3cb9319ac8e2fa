"""The file of a run's metadata: YAML or JSON, read as strictly as the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sidejudge.monitor.config.document import MAX_BYTES, read_document
from sidejudge.scoring.case.case import parse_output
from sidejudge.scoring.errors import SidejudgeError


class MetadataError(SidejudgeError):
    """The file holds no metadata that could be checked; the message names it, and every fault in it."""


def read_metadata(path: Path, environ: Mapping[str, str]) -> Mapping[str, object]:
    """The object in the file; ``${NAME}`` in YAML is taken from ``environ``. ``OSError`` when it cannot be opened."""
    with path.open("rb") as file:
        read = file.read(MAX_BYTES + 1)
    if len(read) > MAX_BYTES:
        raise MetadataError(f"{path}: is larger than {MAX_BYTES} bytes")
    try:
        text = read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise MetadataError(f"{path}: is not UTF-8 text") from None
    if text.lstrip().startswith("{"):
        parsed = parse_output(text)
        if parsed.error is None and isinstance(parsed.value, dict):
            return parsed.value
    document = read_document(text, environ, str(path))  # a flow mapping of YAML begins with a brace too
    if document.problems:
        raise MetadataError("\n".join(map(str, document.problems)))
    if not isinstance(document.value, dict):
        raise MetadataError(f"{path}: is not an object")
    return document.value
