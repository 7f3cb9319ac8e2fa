"""JSON in pieces: a body of many values parsed span by span, so that other threads have their turn in between.

A parser in C keeps every other thread waiting until it ends: a million keys, for seconds on a busy machine. So the body
is cut where its spans (or log records) begin and end, each piece is parsed by itself, and put where it stood.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Final

from sidejudge.scoring.trace.span import Json

from .decode import UndecodableError
from .decode_json import load_value

MOST_VALUES: Final = 50_000
"""Values of one span or record: some 20 ms of parsing."""
MOST_AROUND: Final = 150_000
"""Values of all that stands around them, the resources and scopes of a whole request: three times as long."""
_SPAN_DEPTH: Final = 7
"""Objects and lists that a span or a log record stands in, with itself."""
_STRUCTURE: Final = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+"){0,1000}+([{}\[\]])?+', re.DOTALL)
"""Whatever comes before a brace or bracket, and that. Of many texts in a row some are taken at a time."""


def load_pieces(body: bytes) -> dict[str, Json]:
    """What ``load_object`` returns. Raises ``UndecodableError`` as well where one piece holds too many values."""
    mark = secrets.token_hex(8)  # nobody who writes a body knows it
    skeleton: list[bytes] = []
    pieces: list[Json] = []
    at = 0
    for begin, end in _cuts(body):
        skeleton += (body[at:begin], b'{"%s":%d}' % (mark.encode(), len(pieces)))
        pieces.append(_loaded(body[begin:end], MOST_VALUES, "a span, a record or a resource"))
        at = end
    skeleton.append(body[at:])
    request = _loaded(b"".join(skeleton), MOST_AROUND + 2 * len(pieces), "the request, beside its spans and records,")
    if not isinstance(request, dict):
        raise UndecodableError(f"not an OTLP/JSON request: the top is a {type(request).__name__}, not an object")
    return {key: _whole(value, mark, pieces) for key, value in request.items()}


def _cuts(body: bytes) -> Iterator[tuple[int, int]]:
    """Where each object or list of that depth begins and ends."""
    depth = begin = 0
    for match in _STRUCTURE.finditer(body):
        if (found := match[1]) is None:
            continue
        if found in b"{[":
            depth += 1
            if depth == _SPAN_DEPTH:
                begin = match.start(1)
        else:
            if depth == _SPAN_DEPTH:
                yield begin, match.end(1)
            depth -= 1


def _loaded(piece: bytes, most: int, what: str) -> Json:
    if piece.count(b",") + piece.count(b"{") + piece.count(b"[") > most:
        raise UndecodableError(f"{what} holds more than {most} values; send smaller batches")
    return load_value(piece)


def _whole(value: Json, mark: str, pieces: list[Json]) -> Json:
    """The value with the pieces in their places; above them it is no deeper than they are."""
    if isinstance(value, list):
        return [_whole(each, mark, pieces) for each in value]
    if not isinstance(value, dict):
        return value
    number = value.get(mark)
    if isinstance(number, int):
        return pieces[number]
    return {key: _whole(each, mark, pieces) for key, each in value.items()}
