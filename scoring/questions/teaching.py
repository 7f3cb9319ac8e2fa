"""Teaching: the labelled cases that may be shown to a judge as examples, and therefore measure nothing.

Only the id of a case decides. This is a separate file because every monitor imports it, and a monitor without a judge
imports nothing of judging.
"""

from __future__ import annotations

import hashlib
from typing import Final

TEACHING: Final = 0.25
"""Share of the labelled cases that serve as examples."""
SHOWN: Final = "labelled_examples"
"""The detail of a score whose question showed examples from labels: their number."""


def teaches(identity: str) -> bool:
    """Whether a case with this id may serve as an example.

    A case with several ids serves only if all of them do, and measures only if none does.
    """
    digest = hashlib.sha256(f"teaches\0{identity}".encode()).digest()
    return int.from_bytes(digest[:7]) < TEACHING * (1 << 56)
