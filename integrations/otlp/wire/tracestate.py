"""The randomness of a trace, and OpenTelemetry's entry in a W3C trace state (``rv``, ``th``) that may state it.

Grammar and meaning: opentelemetry-specification, trace/tracestate-handling.md. What does not follow the grammar is
ignored, as it requires.

The *random* flag of W3C Trace Context Level 2 is not looked at: exporters leave the low byte of the flags out, and
propagators of Level 1 drop it, so its absence means nothing. The low 56 bits of an id are presumed to be random, as
samplers must presume; they are for ids of X-Ray (time first) and for 64-bit ids padded with zeros too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

_RANDOMNESS: Final = re.compile(r"[0-9a-f]{14}")
_THRESHOLD: Final = re.compile(r"[0-9a-f]{1,14}")
PUBLIC_HASH_KEY: Final = b"sidejudge.randomness"
"""The key of ``hashed_randomness`` where none is secret: the same everywhere, so that processes agree."""


def randomness(trace_id: bytes, trace_state: str = "") -> int:
    """The 56 random bits R of a trace: ``ot=rv:…`` where given, else the last 7 bytes of the trace id."""
    value = _field(trace_state, "rv") if trace_state else None
    if value is not None and _RANDOMNESS.fullmatch(value):
        return int(value, 16)
    return int.from_bytes(trace_id[-7:], "big")


def hashed_randomness(trace_id: bytes, hash_key: bytes = PUBLIC_HASH_KEY) -> bytes:
    """56 bits, as bytes, that depend on the whole trace id: for ids whose last bytes are not uniformly random.

    BLAKE2b of the 16 bytes, 7 bytes long: independent of whatever a sampler upstream decided by, so that probabilities
    multiply. Who does not know ``hash_key`` cannot choose a trace id that is drawn.
    """
    return blake2b(trace_id, digest_size=7, key=hash_key).digest()


def random_bits(trace_id: bytes, hash_key: bytes, trace_states: Iterable[str] = ()) -> int:
    """The 56 bits that decide on a trace: ``ot=rv`` or the end of its id, as specified; with a key, a hash of the id.

    Of several values that its spans state the smallest counts.
    """
    if hash_key:
        return int.from_bytes(hashed_randomness(trace_id, hash_key), "big")
    stated = [randomness(trace_id, state) for state in trace_states if state]
    return min(stated) if stated else randomness(trace_id)


def secret_hash_key(secret: str) -> bytes:
    """The key of ``hashed_randomness`` that follows from a secret: equal in every process that has it."""
    return blake2b(secret.encode("utf-8", "replace"), digest_size=32, person=b"sidejudge.draw").digest()


def incoming_threshold(trace_state: str) -> int | None:
    """The rejection threshold T that an upstream sampler applied, in [0, 2**56); ``None`` where none is stated.

    ``th`` is written with trailing zeros cut: ``0`` is 100 %, ``8`` 50 %, ``c`` 25 %, ``fd70a4`` 1 %.
    """
    value = _field(trace_state, "th") if trace_state else None
    if value is None or not _THRESHOLD.fullmatch(value):
        return None
    return int(value.ljust(14, "0"), 16)


def _field(trace_state: str, name: str) -> str | None:
    for member in trace_state.split(","):
        key, equals, fields = member.strip(" \t").partition("=")
        if key == "ot" and equals:
            for part in fields.split(";"):
                found, colon, value = part.partition(":")
                if found == name and colon:
                    return value
            return None
    return None


NEVER: Final = 1 << 56
"""The threshold that no trace reaches: rate 0."""


def threshold(rate: float) -> int:
    """The rejection threshold of a rate in [0, 1], in [0, 2**56]. A rate above 0 never rounds down to "never"."""
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"a sampling rate lies in [0, 1], got {rate!r}")
    if rate == 0.0:
        return NEVER
    return NEVER - max(1, round(rate * NEVER))  # the product is exact: 2**56 is a power of two


def probability(threshold: int) -> float:
    """The probability with which a threshold keeps a trace, in [0, 1]: (2**56 - T) / 2**56."""
    if not 0 <= threshold <= NEVER:
        raise ValueError(f"a rejection threshold lies in [0, 2**56], got {threshold!r}")
    return (NEVER - threshold) / NEVER
