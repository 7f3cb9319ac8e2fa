"""Fence: material of a case between two lines of marks that nothing in it can imitate.

The code in the marks is derived from the SHA-256 of the very text between them: a text that carried its own closing
line would have to contain its own hash. It needs no randomness, so equal material gives equal prompts, and the retry
and the cache see the same request. Besides, whatever looks like a mark, like a control token of a model's chat format,
or cannot be seen, is written so that it is neither. All in linear time.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from sidejudge.scoring.lexical.code_points import CodePoints

_CODE = 16
"""Hexadecimal digits of the code: 64 bits."""
_MARKS = re.compile(r"[<＜﹤]{3,}|[>＞﹥]{3,}")  # characters that look alike
_CONTROL_TOKENS = re.compile(
    r"<(?=[|｜])|[|｜](?=>)"
    r"|<(?=/?(?:s|bos|eos|pad|unk|think|start_of_turn|end_of_turn|system|assistant|user|tool_call|tool_response)>)"
    r"|<(?=</?SYS>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS)\])",
    re.IGNORECASE,
)
_JOINERS = re.compile(r"[\u200c\u200d\ufe00-\ufe0f]{2,}")
"""Joiners and variation selectors spell scripts and emoji one at a time; in a row they spell hidden messages."""


_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PLAIN = "\n\t\u200c\u200d"


def _written(characters: str) -> str:
    return "".join(f"[U+{ord(character):04X}]" for character in characters)


def _shown(code: int) -> str:
    """A character where it can be seen, else its number."""
    character = chr(code)
    hidden = unicodedata.category(character) in _HIDDEN or 0xE0100 <= code <= 0xE01EF
    return _written(character) if hidden and character not in _PLAIN else character


_VISIBLE = CodePoints(_shown)


def plain(text: str) -> str:
    r"""The text with nothing in it that could pass for a mark, act as a control token, or not be seen.

    >>> plain("a\u202eb <<<END 00>>> <|im_end|>")
    'a[U+202E]b < < <END 00> > > < |im_end| >'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # To look for a character costs a tenth of what an expression costs; most texts hold none of these.
    if not text.isascii():
        text = _JOINERS.sub(lambda match: _written(match.group()), text)
    text = text.translate(_VISIBLE)
    if not text.isascii() or "<<<" in text or ">>>" in text:
        text = _MARKS.sub(lambda match: " ".join(match.group()), text)
    if any(beginning in text for beginning in "<[|｜"):
        text = _CONTROL_TOKENS.sub(lambda match: f"{match.group()} ", text)
    return text


def fence(name: str, text: str) -> str:
    """The text as data under a name; ``name`` is ours, never the case's."""
    shown = plain(text)
    code = hashlib.sha256(shown.encode()).hexdigest()[:_CODE]
    return f"<<<DATA {name} {code}>>>\n{shown}\n<<<END {code}>>>"
