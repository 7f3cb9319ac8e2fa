"""Verdict output: where the verdicts of a run go: a file, a stream, or shards of a folder or a bucket."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Literal, TypeAlias

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.errors import SidejudgeError

from .case_sources import CaseSources
from .request import ScoreRequest
from .verdict_file import VerdictFile, VerdictStream
from .verdict_shards import VerdictShards

Output: TypeAlias = VerdictFile | VerdictStream | VerdictShards
ShardForm: TypeAlias = Literal["jsonl", "parquet"]


class OutputError(SidejudgeError):
    """The place of verdicts cannot be reached or written."""


def verdict_output(
    out: str,
    shards: ShardForm | None,
    sources: CaseSources,
    request: ScoreRequest,
    settings: Config,
    *,
    overwrite: bool,
) -> Output:
    """The output that was asked for; ``overwrite`` begins anew. Raises ``OutputError``, ``AnotherRunError``."""
    if shards is not None:
        try:
            from sidejudge.integrations.history.place import Place  # noqa: PLC0415  # pyarrow only where it is asked for

            made = VerdictShards(Place(out), shards, _run(sources, request, settings))
            made.begin(anew=overwrite)
        except ImportError:
            raise OutputError("shards are not written here: pip install 'sidejudge[parquet]'") from None
        except OSError as error:
            raise OutputError(str(error)[:300]) from None
        return made
    if out == "-":
        return VerdictStream(sys.stdout.buffer)
    if "://" in out:
        raise OutputError("one file is not written to an object store; add --shards jsonl")
    if overwrite and Path(out).is_file():
        Path(out).write_bytes(b"")
    return VerdictFile(Path(out))


def _run(sources: CaseSources, request: ScoreRequest, settings: Config) -> dict[str, object]:
    """What the verdicts of a run depend on, but for the contents of the files."""
    versions = sorted((name, rubric.version) for name, rubric in configured(settings).items())
    chosen = (versions, settings.scenarios, settings.routes, settings.default_rubrics)
    return {
        "cases": [[each.name, each.size] for each in sources.files],
        "rubrics": list(request.chosen),
        "configuration": hashlib.sha256(repr(chosen).encode()).hexdigest()[:16],
        "repeat": request.repeat,
        "keep_outputs": request.keep_outputs,
    }
