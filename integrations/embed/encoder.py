"""The part of an encoder that is used: texts come in, a matrix with a row a text goes out.

Errors of an embedding model in this process, in words for an operator.
"""

from __future__ import annotations

from typing import Protocol, Self

from sidejudge.scoring.errors import RemediedError
from sidejudge.scoring.evaluators.embedding import Vector


class Matrix(Protocol):
    """An array of numpy."""

    def astype(self, kind: str, /) -> Self: ...
    def tolist(self) -> list[Vector]: ...


class Encoder(Protocol):
    """A model of sentence-transformers, or one that is called as they are."""

    def encode(self, texts: list[str], /, **options: object) -> Matrix: ...


INSTALL = "pip install 'sidejudge[embeddings]'"


class EmbeddingError(RemediedError):
    """No vectors could be made. ``remedy`` says what to do; it is empty where the failure may pass by itself.

    ``of_texts``: other texts may fare better, so those that were given together may be tried one by one.
    """

    def __init__(self, cause: str, remedy: str = "", *, of_texts: bool = False) -> None:
        super().__init__(cause, remedy)
        self.of_texts = of_texts

    def __str__(self) -> str:
        return f"{self.cause}; {self.remedy}" if self.remedy else self.cause
