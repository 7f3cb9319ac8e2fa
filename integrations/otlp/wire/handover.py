"""Handover: kept chunks of traces that one monitor passes on to another, marked with the threshold they were drawn at.

The mark is an attribute of the resource, so it survives a Collector in between. The other monitor draws at no lower
threshold, so it records the true probability. It does not count the spans as received: the first monitor has done so.
A request that goes straight to a monitor has a header too, so that it is not forwarded again.

Anybody who sends telemetry could write these. So both are signed with a key that only monitors know (keyed BLAKE2b),
the mark for one trace alone: a copy of it says nothing about another.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from hashlib import blake2b
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from .kept import LOGS
from .schema import classes
from .tracestate import PUBLIC_HASH_KEY

HEADER: Final = "sidejudge-handover"
_MARK: Final = b"sidejudge.handover"
_PROOF: Final = b"sidejudge.handover.proof"
_HASHED: Final = ";hashed"
_DIGITS: Final = frozenset("0123456789abcdef")
_HANDS: Final = 4
"""Marks of a resource that are looked at, the last of them."""
_REMEMBERED: Final = 1_000
"""Other monitors whose keys are known, at most."""


class HandoverMark(NamedTuple):
    """What a resource is marked with. ``trace_id`` is the one trace it holds for; empty: it is not believed."""

    threshold: int
    trace_id: bytes


class HandoverKeys:
    """The key with which this monitor signs, and the keys of other monitors that it accepts.

    ``shared`` is a key that all monitors were given; without it this one makes its own, which others have to get.
    """

    def __init__(self, shared: str | None = None) -> None:
        self.is_shared = shared is not None
        self.own: Final = shared or secrets.token_hex(16)
        self._known: OrderedDict[str, bytes] = OrderedDict()
        self._name = self._remember(self.own)

    def learn(self, key: str) -> None:
        """Believe the key of another monitor."""
        self._remember(key)
        if len(self._known) > _REMEMBERED:
            del self._known[next(name for name in self._known if name != self._name)]

    def _remember(self, key: str) -> str:
        derived = blake2b(key.encode("utf-8", "replace"), digest_size=32, person=b"sidejudge").digest()
        name = blake2b(derived, digest_size=4).hexdigest()
        self._known[name] = derived
        self._known.move_to_end(name)
        return name

    def header(self) -> str:
        """The value of ``HEADER`` in a request of this monitor."""
        return self._signed(HEADER)

    def proves(self, header: bytes) -> bool:
        """Whether a request with this value of ``HEADER`` comes from a monitor."""
        return self._is_signed(HEADER, header.decode("ascii", "replace"))

    def sign(self, trace_id: bytes, stated: str) -> str:
        """The proof that a mark of this monitor is its own, and for this trace."""
        return f"{trace_id.hex()}:{self._signed(f'{trace_id.hex()}:{stated}')}"

    def signed_for(self, stated: str, proof: str) -> bytes:
        """The trace for which a known monitor signed this mark; empty without a valid signature."""
        trace_id, _, signature = proof.partition(":")
        if len(trace_id) != 32 or not set(trace_id) <= _DIGITS:
            return b""
        return bytes.fromhex(trace_id) if self._is_signed(f"{trace_id}:{stated}", signature) else b""

    def _signed(self, text: str) -> str:
        return f"{self._name}:{_signature(self._known[self._name], text)}"

    def _is_signed(self, text: str, signature: str) -> bool:
        name, _, rest = signature.partition(":")
        key = self._known.get(name)
        return key is not None and hmac.compare_digest(_signature(key, text).encode(), rest.encode("utf-8", "replace"))


def _signature(key: bytes, text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), key=key, digest_size=16).hexdigest()


def spans_of(payload: bytes, trace_id: bytes, threshold: int, keys: HandoverKeys, *, hash_key: bytes) -> bytes:
    """A chunk of spans of a trace as a request that is marked; empty for a chunk of log records."""
    if payload[:1] == LOGS:
        return b""
    request = classes("envelope")["Request"].FromString(payload)
    stated = f"{threshold:014x}{_randomness(hash_key)}"
    mark = _attributes({_MARK: stated, _PROOF: keys.sign(trace_id, stated)})
    for resource_spans in request.resource_spans:
        resource_spans.resource += mark  # the bytes of an attribute after those of a resource are one attribute more
    return bytes(request.SerializeToString())


def logs_of(payload: bytes) -> bytes:
    """A chunk of log records as a request; empty for a chunk of spans."""
    return bytes(classes("complete")["KeptLogs"].FromString(payload).request) if payload[:1] == LOGS else b""


def drawn_at(resource: bytes, keys: HandoverKeys, *, hash_key: bytes) -> HandoverMark | None:
    """What a resource is marked with; None without a mark.

    A mark of another kind of randomness bounds nothing here: then the threshold is 0, and the trace is drawn once more.
    """
    if _MARK not in resource:
        return None
    try:
        attributes = classes("complete")["Resource"].FromString(resource).attributes
    except DecodeError:
        return None
    texts = [(each.key, each.value.string_value.decode("ascii", "replace")) for each in attributes]
    stated_ones, proofs = ([text for key, text in texts if key == name] for name in (_MARK, _PROOF))
    marks = list(zip(stated_ones, proofs, strict=False))
    for stated, proof in marks[-_HANDS:]:  # each monitor on the way has put its own after the others
        digits, by = stated[:14], stated[14:]
        if len(digits) == 14 and set(digits) <= _DIGITS and (trace_id := keys.signed_for(stated, proof)):
            return HandoverMark(int(digits, 16) if by == _randomness(hash_key) else 0, trace_id)
    return HandoverMark(0, b"") if stated_ones else None


def _randomness(hash_key: bytes) -> str:
    """How a mark names the randomness: nothing stands for the trace id's own; a secret key is named by its digest."""
    if hash_key in (b"", PUBLIC_HASH_KEY):
        return _HASHED if hash_key else ""
    return f"{_HASHED}:{blake2b(b'name', key=hash_key, digest_size=4).hexdigest()}"


def _attributes(values: dict[bytes, str]) -> bytes:
    resource = classes("complete")["Resource"]()
    for name, value in values.items():
        added = resource.attributes.add()
        added.key, added.value.string_value = name, value.encode()
    return bytes(resource.SerializeToString())
