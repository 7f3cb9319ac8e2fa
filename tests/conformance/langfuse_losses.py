"""What a Langfuse drops of what a client sent, so that the verdict by way of it is another one.

The traces of all other recordings get the same verdict whether they come as OTLP or are read back from a Langfuse
(`tests/end_to_end/test_langfuse_parity.py`, which fails for an entry that is not needed any more).
"""

from __future__ import annotations

LOST: dict[tuple[str, str], str] = {}
"""By client and scenario."""
LOST_IN_VERSION_3: dict[tuple[str, str], str] = LOST
"""The same for the legacy reads."""
