"""Fence: material of a case between two lines of marks that nothing in it can imitate.

The code in the marks is derived from the SHA-256 of the very text between them: a text that carried its own closing
line would have to contain its own hash. It needs no randomness, so equal material gives equal prompts, and the retry
and the cache see the same request. Besides, whatever looks like a mark, like a control token of a model's chat format,
or cannot be seen, is written so that it is neither. All in linear time.
"""

from __future__ import annotations

import hashlib

from sidejudge.scoring.lexical.shown_text import plain

_CODE = 16
"""Hexadecimal digits of the code: 64 bits."""


def fence(name: str, text: str) -> str:
    """The text as data under a name; ``name`` is ours, never the case's."""
    shown = plain(text)
    code = hashlib.sha256(shown.encode()).hexdigest()[:_CODE]
    return f"<<<DATA {name} {code}>>>\n{shown}\n<<<END {code}>>>"
