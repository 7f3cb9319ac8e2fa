"""Reading: the records of a history, by commands that need pyarrow only where one is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, cast, overload

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument


class HistoryError(SidejudgeError):
    """A history that cannot be read, or pyarrow that is missing."""


def is_history(path: str) -> bool:
    """Whether something names a history rather than a file: a directory, or an address of an object store."""
    return "://" in path or Path(path).is_dir()


@overload
def history_records(
    path: str, kind: Literal["verdicts"], since_day: str = "", complain: Callable[[str], None] = ...
) -> Iterator[VerdictDocument]: ...


@overload
def history_records(
    path: str, kind: Literal["outcomes"], since_day: str = "", complain: Callable[[str], None] = ...
) -> Iterator[TraceDocument]: ...


def history_records(
    path: str,
    kind: Literal["verdicts", "outcomes"],
    since_day: str = "",
    complain: Callable[[str], None] = lambda _: None,
) -> Iterator[VerdictDocument | TraceDocument]:
    """The records from a day on (``2026-11-22``), day by day, each once; later revisions come as further ones.

    ``complain`` gets one line of text for each file that is no part of a history, and is left out.

    Raises:
        HistoryError: It cannot be read.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra

        from .history import History  # noqa: PLC0415  # as above
        from .place import Place  # noqa: PLC0415  # as above
    except ImportError:
        raise HistoryError(f"{path}: Parquet is not read here: pip install 'sidejudge[parquet]'") from None
    try:
        records = History(Place(path), "", complain).records(kind, since_day)
        yield from cast("Iterator[VerdictDocument | TraceDocument]", records)  # rows as they were written
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise HistoryError(f"{path.partition('?')[0]}: cannot be read as a history: {str(error)[:300]}") from None
