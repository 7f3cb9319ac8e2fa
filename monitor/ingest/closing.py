"""Closing: a trace that is to be evaluated now, and how it came to be closed."""

from __future__ import annotations

from sidejudge.integrations.otlp.wire.request import ChunkOrigin
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Completion

from .outcomes import EndReason


@record(frozen=True, slots=True, kw_only=True)
class Closing:
    """A trace to be evaluated now. ``revision`` counts its closings from 1; ``origin`` has its lowest threshold.

    ``whole``: a root has come, and every parent that was named. ``session``: it is a conversation
    (``monitor.sessions.windows``), and ``trace_id`` its key. ``size`` is how many bytes of it are kept, and ``decoded``
    an upper estimate of the memory they take once decoded, where that is known. ``left_out`` is how many spans of it
    were not kept because it is too large. ``give_up`` is why it ends unread; None: it is judged. ``thinned``: under
    load it was drawn at a lower rate than configured, and the threshold of ``origin`` is that. ``opened_ns`` and
    ``closed_ns`` are when its first span came and when it was closed, ns since the epoch.
    """

    trace_id: bytes
    completion: Completion
    revision: int
    origin: ChunkOrigin
    whole: bool = True
    session: bool = False
    size: int = 0
    decoded: int = 0
    left_out: int = 0
    give_up: EndReason | None = None
    thinned: bool = False
    opened_ns: int = 0
    closed_ns: int = 0
