"""Teaching: which labelled cases may be shown to a judge as examples, and therefore measure nothing.

The id of a case decides that alone, before anybody looks at it. It is a file of its own because every monitor imports
it, and one without a judge imports nothing of judging.
"""

from __future__ import annotations

import hashlib
from typing import Final

TEACHING: Final = 0.25
"""Share of the labelled cases that teach."""
SHOWN: Final = "labelled_examples"
"""The detail of a score whose question showed examples out of labels: how many."""


def teaches(identity: str) -> bool:
    """Whether a case of this id may teach. One with several ids teaches by all of them, and measures by none."""
    digest = hashlib.sha256(f"teaches\0{identity}".encode()).digest()
    return int.from_bytes(digest[:7]) < TEACHING * (1 << 56)
