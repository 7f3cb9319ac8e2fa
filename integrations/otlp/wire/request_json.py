"""Split an export request in OTLP/JSON into chunks of the traces that are kept, as ``request`` does with protobuf.

All of it has to be parsed to find the ids, but only spans that are drawn are encoded. Loose writing of clients is
tolerated (see ``json_values``). A span without valid ids, or with a value that cannot be read, is rejected and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sidejudge.scoring.trace.span import Json

from .bounds import PARSED_BYTES, WorkBudget
from .chunk import ChunkOrigin
from .decode import UndecodableError
from .decode_json import UNREADABLE, ids_of, load_object, load_pieces, read_json_span
from .encode import encode_resource, encode_scope, encode_span
from .head_sampler import Kept
from .json_values import identifier, mapping, objects, text
from .layout import MOST_PARTS, Place
from .receipt import Admit, Split, Undecodable
from .request import COPIED, keep
from .schema import classes

_PER_OCCURRENCE: Final = {b"{": 380, b"[": 92, b",": 60}
"""Bytes of memory of a parsed object, list or value, by the byte that marks it in JSON: ``[]`` takes 92."""
_AT_ONCE_BYTES: Final = 2 << 20
"""Most memory that a body may take to be parsed at once (some 10 ms of work); a larger one is parsed in pieces."""
_COUNTED: Final = 1 << 20
"""Bytes of the body whose marks are counted in one call."""
_SPAN_STEPS: Final = 8
"""Work of a span that is encoded, beside its values."""
_PART_STEPS: Final = 3
"""Work of a resource or a scope."""
VALUE_BYTES: Final = 64
"""Bytes of JSON for which encoding takes about one step."""


def split_json(body: bytes, admit: Admit, budget: WorkBudget | None = None, *, states: bool = True) -> Split:
    """Split a JSON request. ``states`` and the errors raised are as for ``request.split``."""
    request = load(body, "resourceSpans")
    result = Split(states=states)
    kept: Kept = {}
    budget = budget or WorkBudget()
    budget.spend(len(body) // VALUE_BYTES)
    try:
        _sample_all(request, admit, kept, result, budget)
    except Undecodable:
        raise
    except UNREADABLE as error:
        raise Undecodable(f"a resource or scope in the request cannot be read ({type(error).__name__})") from None
    request.clear()  # what was parsed and what is kept are not in memory together
    keep(kept, result, len(body) + COPIED, budget)
    return result


def _sample_all(request: dict[str, Json], admit: Admit, kept: Kept, result: Split, budget: WorkBudget) -> None:
    parts = Parts(budget)
    for r, resource_spans in enumerate(parts.of(request.get("resourceSpans"))):
        resource, url = encode_resource(mapping(resource_spans.get("resource"))), schema_url(resource_spans)
        origin = admit(resource)
        for s, scope_spans in enumerate(parts.of(resource_spans.get("scopeSpans"))):
            scope = encode_scope(mapping(scope_spans.get("scope")))
            place: Place = (r, s, resource, url, scope, schema_url(scope_spans))
            spans = objects(scope_spans.get("spans"))
            if origin.is_own(scope):
                result.pass_over([_ids_alone(span) for span in spans], origin)
                continue
            held: dict[bytes, list[bytes]] = {}
            for span in spans:
                _sample(span, origin, held, result, budget)
            for trace_id, encoded in held.items():
                kept.setdefault(trace_id, []).append((place, origin, encoded))


class Parts:
    """Iterates over the resources and scopes of a request, as many as it may have in all."""

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget
        self._left = MOST_PARTS

    def of(self, found: Json) -> Iterator[dict[str, Json]]:
        """Iterate over a list of them. Raises ``Undecodable`` when there are too many, and ``OverBudget``."""
        for part in objects(found):
            self._left -= 1
            if self._left < 0:
                raise Undecodable(f"more than {MOST_PARTS} resources and scopes in a request; send smaller batches")
            self._budget.spend(_PART_STEPS)
            yield part


def _sample(
    span: dict[str, Json], origin: ChunkOrigin, held: dict[bytes, list[bytes]], result: Split, budget: WorkBudget
) -> None:
    """Decide on a span, and encode it if it is drawn."""
    result.spans += 1
    budget.spend(1)
    if (ids := ids_of(span)) is None:
        result.invalid_ids += 1
        return
    trace_id = bytes.fromhex(ids[0])
    try:
        trace_state = text(span.get("traceState")) if result.states else ""
        result.explicit |= "rv:" in trace_state
        if not origin.draws(trace_id, trace_state):
            result.dropped.setdefault(origin, set()).add(trace_id)
            return
        budget.spend(_SPAN_STEPS)
        encoded = encode_span(read_json_span(span, ids, {}, {}))
    except UNREADABLE:
        result.damaged += 1
        return
    held.setdefault(trace_id, []).append(encoded)


def _ids_alone(span: dict[str, Json]) -> bytes:
    ids = classes("complete")["Ids"]
    return bytes(ids(trace_id=bytes.fromhex(identifier(span.get("traceId"), 16) or "")).SerializeToString())


def load(body: bytes, wanted: str) -> dict[str, Json]:
    """Parse a request.

    Args:
        body: The request in JSON.
        wanted: The key that distinguishes a request for spans from one for log records.

    Raises:
        Undecodable: It is not JSON, holds too much, or is not a request of this kind.
    """
    parsed = 0
    for at in range(0, len(body), _COUNTED):
        parsed += sum(memory * body.count(mark, at, at + _COUNTED) for mark, memory in _PER_OCCURRENCE.items())
        if parsed > PARSED_BYTES:
            raise Undecodable("the request holds more objects or values than one may; send smaller batches")
    try:
        request = load_object(body) if parsed <= _AT_ONCE_BYTES else load_pieces(body)
    except UndecodableError as error:
        raise Undecodable(str(error)) from None
    if wanted not in request and request:
        raise Undecodable(f"not an OTLP/JSON request for this path: there is no {wanted}")
    return request


def schema_url(of: dict[str, Json]) -> bytes:
    """Return the schema URL of a resource or a scope."""
    return text(of.get("schemaUrl")).encode("utf-8", "replace")
