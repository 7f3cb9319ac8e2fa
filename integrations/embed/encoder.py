"""The part of an encoder that is used: texts come in, a matrix with a row a text goes out."""

from __future__ import annotations

from typing import Protocol, Self

from sidejudge.scoring.evaluators.vector import Vector


class Matrix(Protocol):
    """An array of numpy."""

    def astype(self, kind: str, /) -> Self: ...
    def tolist(self) -> list[Vector]: ...


class Encoder(Protocol):
    """A model of sentence-transformers, or one that is called as they are."""

    def encode(self, texts: list[str], /, **options: object) -> Matrix: ...
