"""A real sentence-transformers model that a test makes in a second: each known word has a direction of its own.

It is a static one (tokenizer, table of vectors, mean), saved and loaded as any other. Words that translate each other
share a direction, up to a little of their own, so that cosines mean something and are the same on every machine.
"""

from __future__ import annotations

from pathlib import Path

CONCEPTS = (
    ("refund", "refunded", "erstattung", "रिफंड", "money", "back"),
    ("cancel", "cancelled", "kündigung", "stornieren"),
    ("billing", "rechnung", "bill", "invoice"),
    ("agent", "berater", "एजेंट"),
    ("customer", "kunde", "ग्राहक"),
    ("account", "konto", "खाता"),
    ("verified", "confirmed", "geprüft"),
    ("weather", "wetter", "sunny"),
    ("card", "karte"),
    ("monday", "montag", "सोमवार"),
)
DIMENSIONS = 64
_OWN = 0.2
"""How much of its own a word has: two words of one concept have a cosine of 1 / (1 + 0.2²) = 0.96."""


def words() -> list[str]:
    return [word for concept in CONCEPTS for word in concept]


def save(folder: Path) -> Path:
    """Make the model, with the library, in this folder."""
    import numpy as np  # noqa: PLC0415  # slow
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # slow
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding  # noqa: PLC0415  # slow
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: PLC0415  # slow

    known = words()
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, **{w: at for at, w in enumerate(known, 1)}}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    table = np.zeros((len(known) + 1, DIMENSIONS), dtype="float32")
    for at, word in enumerate(known, 1):
        concept = next(number for number, each in enumerate(CONCEPTS) if word in each)
        table[at, concept] = 1.0
        table[at, len(CONCEPTS) + at - 1 if len(CONCEPTS) + at - 1 < DIMENSIONS else DIMENSIONS - 1] = _OWN
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=table)], device="cpu").save(str(folder))
    return folder
