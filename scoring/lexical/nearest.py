"""Nearest: what an unknown key was probably meant to be."""

from __future__ import annotations

import difflib


def nearest(key: str, valid: tuple[str, ...]) -> str:
    """The end of a message about an unknown key: the nearest valid one, else all of them."""
    near = difflib.get_close_matches(key, valid, 1)
    return f"; did you mean {near[0]}?" if near else f"; valid are {', '.join(valid)}"
