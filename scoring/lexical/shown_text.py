"""Shown text: any text in, the same without what could pass for a mark or a control token, or cannot be seen."""

from __future__ import annotations

import re
import unicodedata

from .code_points import CodePoints

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
