"""Load: recordings of real clients as request bodies without end, every copy with ids of its own.

Traces are packed into requests of a wanted number of spans, in order, one ``ResourceSpans`` a resource as a batch of an
SDK has it; a trace may so be cut across requests. Each copy has new trace and span ids, also where one stands as
hexadecimal text inside an attribute, so that no server is spared work by knowing a trace already. Times are moved to
now. ``fresh`` copies have other contents, too (``fresh_words.py``).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.bench.fresh_words import FreshWords

KEPT = Path(__file__).parents[1] / "data" / "otlp"
"""Recordings of real clients that lie in this repository."""

Id = int
"""Which id of the lap stands at a place."""


@dataclass(frozen=True, slots=True)
class Template:
    """A body, and where ids stand in it: offset, which id, and whether it is written as text."""

    body: bytes
    spans: int
    places: tuple[tuple[int, Id, bool], ...]


class Load:
    """All recordings below a folder, in an order drawn by ``rng``, ``laps`` times over."""

    def __init__(
        self, folder: Path, per_request: int, rng: random.Random, laps: int = 1, *, fresh: bool = False
    ) -> None:
        stories = [_spans(directory) for directory in sorted({path.parent for path in folder.rglob("*.pb")})]
        stories = [story for story in stories if story]
        if not stories:
            raise SystemExit(f"no recorded requests below {folder}")
        self._lengths: list[int] = []
        packer = _Packer(per_request)
        for _ in range(laps):
            for story in rng.sample(stories, len(stories)):
                packer.add(story, self._renamed(story, rng))
        self.templates = packer.finish()
        self._words = FreshWords([template.body for template in self.templates]) if fresh else None
        self.clients = len({path.relative_to(folder).parts[0] for path in folder.rglob("*.pb")})

    def _renamed(self, story: list[tuple[Any, Any, Any]], rng: random.Random) -> dict[bytes, tuple[bytes, Id]]:
        """A placeholder for each id of a story."""
        names: dict[bytes, tuple[bytes, Id]] = {}
        for _, _, span in story:
            for old in _ids(span):
                if old not in names:
                    names[old] = rng.randbytes(len(old)), len(self._lengths)
                    self._lengths.append(len(old))
        return names

    def bodies(self, spans: int, rng: random.Random) -> Iterator[tuple[bytes, int]]:
        """Fresh bodies until they hold this many spans, each with its number of them."""
        made = 0
        while made < spans:
            ids = [rng.randbytes(length) for length in self._lengths]
            exchange = self._words.exchange(rng) if self._words is not None else bytes
            for template in self.templates:
                if made >= spans:
                    return
                made += template.spans
                yield exchange(_filled(template, ids)), template.spans


def _filled(template: Template, ids: list[bytes]) -> bytes:
    body = bytearray(template.body)
    for at, which, as_text in template.places:
        value = ids[which].hex().encode() if as_text else ids[which]
        body[at : at + len(value)] = value
    return bytes(body)


def _spans(directory: Path) -> list[tuple[Any, Any, Any]]:
    """The spans of one recorded program, each with its resource and scope, times moved to end now."""
    found = []
    for path in sorted(directory.glob("*.pb")):
        if path.name.endswith(".logs.pb"):
            continue
        for rs in ExportTraceServiceRequest.FromString(path.read_bytes()).resource_spans:
            found += [(rs, ss, span) for ss in rs.scope_spans for span in ss.spans]
    shift = time.time_ns() - max((span.end_time_unix_nano for _, _, span in found), default=0)
    for _, _, span in found:
        span.start_time_unix_nano += shift
        span.end_time_unix_nano += shift
        for event in span.events:
            event.time_unix_nano += shift
    return found


def _ids(span: Any) -> list[bytes]:
    linked = [each for link in span.links for each in (link.trace_id, link.span_id)]
    return [each for each in (span.trace_id, span.span_id, span.parent_span_id, *linked) if each]


class _Packer:
    def __init__(self, per_request: int) -> None:
        self._per_request = per_request
        self._done: list[Template] = []
        self._begin()

    def _begin(self) -> None:
        self._message, self._count = ExportTraceServiceRequest(), 0
        self._groups: dict[tuple[bytes, ...], Any] = {}
        self._names: dict[bytes, Id] = {}

    def add(self, story: list[tuple[Any, Any, Any]], names: dict[bytes, tuple[bytes, Id]]) -> None:
        for rs, ss, span in story:
            self._scope(rs, ss).spans.append(_rewritten(span, names))
            self._names.update(names.values())
            self._count += 1
            if self._count == self._per_request:
                self._close()

    def _scope(self, rs: Any, ss: Any) -> Any:
        resource, scope = (rs.resource.SerializeToString(),), ss.scope.SerializeToString()
        if resource not in self._groups:
            self._groups[resource] = self._message.resource_spans.add(resource=rs.resource, schema_url=rs.schema_url)
        if (*resource, scope) not in self._groups:
            group = self._groups[resource]
            self._groups[*resource, scope] = group.scope_spans.add(scope=ss.scope, schema_url=ss.schema_url)
        return self._groups[*resource, scope]

    def _close(self) -> None:
        body = self._message.SerializeToString()
        places = []
        for name, which in self._names.items():
            for mark, as_text in ((name, False), (name.hex().encode(), True)):
                at = body.find(mark)
                while at >= 0:
                    places.append((at, which, as_text))
                    at = body.find(mark, at + len(mark))
        self._done.append(Template(body, self._count, tuple(places)))
        self._begin()

    def finish(self) -> list[Template]:
        if self._count:
            self._close()
        return self._done


def _rewritten(span: Any, names: dict[bytes, tuple[bytes, Id]]) -> Any:
    """The span with placeholders instead of its ids; a text of the same length stays valid where it stands."""
    raw = span.SerializeToString()
    for old, (new, _) in names.items():
        raw = raw.replace(old.hex().encode(), new.hex().encode())
    copy = type(span).FromString(raw)
    for each in (copy, *copy.links):
        each.trace_id, each.span_id = names[each.trace_id][0], names[each.span_id][0]
    if copy.parent_span_id:
        copy.parent_span_id = names[copy.parent_span_id][0]
    return copy
