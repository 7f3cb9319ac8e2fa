"""Calibrate embedding: pairs of texts in, the configured model's thresholds out, also into the configuration.

Pairs are ours or come from JSON Lines (``{"kind": "statement", "one": "…", "other": "…", "same": true}``). The other
lines and comments of the configuration file stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

import yaml

from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.evaluate.embedding import embedding_model
from sidejudge.monitor.offline.whole_file import write_whole
from sidejudge.scoring.calibration.embedding_calibration import KINDS, FittedThreshold, MeaningPair, fit
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.evaluators.embedding import cosine, unit


async def fit_thresholds(section: EmbeddingSection, pairs: Sequence[MeaningPair]) -> list[FittedThreshold]:
    """The threshold of each kind that has pairs. Raises ``EmbeddingError``."""
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.one, pair.other)))
    library = LiteLLM()
    model = embedding_model(section, library)
    try:
        vectors = {text: unit(vector) for text, vector in zip(texts, await model.embed(texts), strict=True)}
    finally:
        await model.close()
        await library.close()
    measured = [(pair, cosine(vectors[pair.one], vectors[pair.other])) for pair in pairs]
    return [fit(kind, measured) for kind in KINDS if any(pair.kind == kind for pair in pairs)]


SHIPPED: Final = "shipped"
"""In place of a file: pairs that are shipped, of support calls in English, German, Spanish and French."""
_MOST: Final = 10_000


class PairFileError(SidejudgeError):
    """A line is no pair; the message names it and its fault."""


def read_pairs(given: str) -> list[MeaningPair]:
    """The pairs of a file, or the shipped ones.

    Raises:
        PairFileError: A line is no pair, or there are too many.
        OSError: The file cannot be read.
    """
    source = files(__package__).joinpath("embedding_pairs.jsonl") if given == SHIPPED else Path(given)
    lines = [line for line in source.read_text(encoding="utf-8").split("\n") if line.strip()]
    if len(lines) > _MOST:
        raise PairFileError(f"more than {_MOST} pairs")
    return [_pair(line, number) for number, line in enumerate(lines, 1)]


def _pair(line: str, number: int) -> MeaningPair:
    try:
        stated = json.loads(line)
    except ValueError:
        raise PairFileError(f"line {number}: is not JSON") from None
    if not isinstance(stated, dict):
        raise PairFileError(f"line {number}: is not an object")
    kind = stated.get("kind", "statement")
    if kind not in KINDS:
        raise PairFileError(f"line {number}: kind: is not one of {', '.join(KINDS)}")
    for name in ("one", "other"):
        if not isinstance(stated.get(name), str) or not stated[name].strip():
            raise PairFileError(f"line {number}: {name}: is no text")
    if not isinstance(stated.get("same"), bool):
        raise PairFileError(f"line {number}: same: is neither true nor false")
    return MeaningPair(kind=kind, one=stated["one"], other=stated["other"], same=stated["same"])


class NotWrittenError(SidejudgeError):
    """The thresholds could not be written; the message is the reason, and the file is as it was."""


def write_thresholds(path: Path, thresholds: Mapping[str, float], check: Callable[[Path], object]) -> None:
    """Write ``evaluators.embedding.thresholds`` into a file, in place of the old ones.

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
    write_whole(path, _with(text, section, stated), check=check)


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
