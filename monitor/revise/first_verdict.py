"""As it was: what the first verdict on a trace knows of it and Langfuse does not give back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.ingest.sampler import NEVER, Decision, random_bits
from sidejudge.scoring.verdict.trace_document import TraceDocument

_REACHES_ALL: Final = NEVER - 1


def spans_as_they_were(spans: Sequence[RawSpan], before: TraceDocument) -> list[RawSpan]:
    """With the service and the environment under which the trace was judged: verdicts stay where they are counted."""
    resource = {"service.name": before["service"]} if before.get("service") else {}
    attribute = {"langfuse.environment": before["environment"]} if before.get("environment") else {}
    return [
        replace(span, resource={**span.resource, **resource}, attributes={**span.attributes, **attribute})
        for span in spans
    ]


def drawn_as_before(before: TraceDocument, trace_id: bytes, hash_key: bytes) -> Decision:
    """The decision that was made when the trace was drawn: it is not drawn again."""
    sampling = before.get("sampling") or {}
    first = before["verdicts"][0] if before["verdicts"] else {}
    chance = float(sampling.get("probability") or first.get("sampling_probability") or 1.0)
    bits = random_bits(trace_id, hash_key)
    if sampling.get("judged_share") is not None:  # so was what the judge's budget could pay for
        bits = 0 if sampling.get("over_budget") else _REACHES_ALL
    return Decision(
        kept=True, probability=chance, base_probability=chance, rule=sampling.get("rule"), randomness=bits,
        selection="forced" if sampling.get("selection") == "forced" else "random",
        upstream=float(sampling.get("upstream", 1.0)),
    )  # fmt: skip
