"""Verdict shards: verdicts in files of bounded size in a folder or a bucket, and a manifest of those that are whole.

A shard is written whole, and then the manifest names it, with how far the input was read. A run that was killed goes on
from there: what the manifest does not name is written anew under the same name, so that no verdict is lost or doubled.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import dropwhile
from typing import TYPE_CHECKING, Final, Literal, Self

import orjson

from sidejudge.scoring.trace.span import JsonRecord

from .case_lines import NumberedLine
from .resume import AnotherRunError, Wanted
from .tally import ScoreTally

if TYPE_CHECKING:
    from sidejudge.integrations.history.place import Place

SHARD_BYTES: Final = 16 * 2**20
SHARD_S: Final = 30.0
"""A shard ends when it is this large or this old: a kill costs at most this much work."""
_MANIFEST: Final = "manifest.json"


class VerdictShards:
    """Writes verdicts to ``place``. ``run`` is what a run depends on: another one is refused."""

    walked = True

    def __init__(
        self,
        place: Place,
        form: Literal["jsonl", "parquet"],
        run: Mapping[str, object],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place, self._form, self._run, self._clock_s = place, form, dict(run), clock_s
        self._shards: list[JsonRecord] = []
        self._open: list[bytes] = []
        self._whole: list[bytes] = []
        self._size = 0
        self._reached: dict[str, int] = {}
        self._since = 0.0
        self.resumed = 0

    def begin(self, *, anew: bool) -> None:
        """Read the manifest; ``anew`` forgets it. Raises ``OSError``, and ``AnotherRunError`` where it is of others."""
        self._since = self._clock_s()
        try:
            stated = orjson.loads(self._place.get(_MANIFEST))
        except FileNotFoundError:
            return
        except orjson.JSONDecodeError:
            raise AnotherRunError(f"{_MANIFEST}: is no manifest of verdicts") from None
        found = stated["shards"] if isinstance(stated, dict) and isinstance(stated.get("shards"), list) else None
        if found is None or not all(_is_shard(each) for each in found):
            raise AnotherRunError(f"{_MANIFEST}: is no manifest of verdicts")
        if anew:
            self._place.delete(_MANIFEST)
            for shard in found:
                self._place.delete(str(shard["name"]))
        elif stated.get("run") != self._run:
            raise AnotherRunError(f"{_MANIFEST}: is of another input, configuration or choice of rubrics")
        else:
            self._shards = found

    def counted(self, tally: ScoreTally) -> None:
        """Count the verdicts that stand already."""
        for shard in self._shards:
            for verdict in self._verdicts(str(shard["name"])):
                tally.add(verdict)
                self.resumed += 1
        if self._shards:
            tally.bad_lines, tally.unrouted, tally.excluded = (
                self._shards[-1][name] for name in ("bad_lines", "unrouted", "excluded")
            )

    def left(self, lines: Iterator[NumberedLine]) -> Iterator[NumberedLine]:
        """The lines that the manifest does not cover."""
        read = self._shards[-1]["read"] if self._shards else -1
        return dropwhile(lambda line: line.read <= read, lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cut()

    def existing(self, wanted: Wanted) -> Mapping[str, object] | None:  # noqa: ARG002  # the signature of a file
        return None

    def all_walked(self) -> None:
        self._cut()
        self._write_manifest(complete=True)

    def append(self, verdict: bytes) -> None:
        self._open.append(verdict)

    def reached(self, read: int, tally: ScoreTally) -> None:
        """All verdicts on the input up to there have been appended."""
        self._whole += self._open
        self._size += sum(map(len, self._open))
        self._open = []
        counts = {"bad_lines": tally.bad_lines, "unrouted": tally.unrouted, "excluded": tally.excluded}
        self._reached = {"read": read, **counts}
        if self._size >= SHARD_BYTES or self._clock_s() - self._since >= SHARD_S:
            self._cut()

    def _cut(self) -> None:
        if not self._reached:
            return
        body, self._whole, self._size = b"".join(self._whole), [], 0
        name = f"shard-{len(self._shards):06d}.{self._form}"
        if self._form == "parquet":
            from sidejudge.integrations.history.rows import table  # noqa: PLC0415  # pyarrow only where it is asked for

            self._place.write(name, table("verdicts", [orjson.loads(line) for line in body.splitlines()]))
        else:
            self._place.put(name, body)
        self._shards.append({"name": name, "verdicts": body.count(b"\n"), **self._reached})
        self._reached = {}
        self._write_manifest(complete=False)
        self._since = self._clock_s()

    def _write_manifest(self, *, complete: bool) -> None:
        stated = {"run": self._run, "complete": complete, "shards": self._shards}
        self._place.put(_MANIFEST, orjson.dumps(stated, option=orjson.OPT_INDENT_2))

    def _verdicts(self, name: str) -> Iterator[JsonRecord]:
        if self._form == "parquet":
            texts = self._place.read(name)["record"].to_pylist()
        else:
            texts = self._place.get(name).splitlines()
        for text in texts:
            yield orjson.loads(text)


def _is_shard(stated: object) -> bool:
    """Whether a line of a manifest is one, and names nothing outside its folder."""
    counts = ("verdicts", "read", "bad_lines", "unrouted", "excluded")
    return (
        isinstance(stated, dict)
        and re.fullmatch(r"shard-\d{6,9}\.(jsonl|parquet)", str(stated.get("name"))) is not None
        and all(isinstance(stated.get(name), int) for name in counts)
    )
