"""Run: the cosines of all pairs by a model, and the thresholds that are fitted to them."""

from __future__ import annotations

from collections.abc import Sequence

from integrations.provider.library import LiteLLM
from monitor.config.evaluators import EmbeddingSection
from monitor.evaluate.embedding.build import embedding_model
from scoring.evaluators.vector import cosine, unit
from scoring.runs.embedding_calibration import KINDS, FittedThreshold, MeaningPair, fit


async def fit_thresholds(section: EmbeddingSection, pairs: Sequence[MeaningPair]) -> list[FittedThreshold]:
    """The threshold of each kind of which there are pairs. Raises ``EmbeddingError``."""
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.one, pair.other)))
    library = LiteLLM()
    model = embedding_model(section, library)
    try:
        vectors = {text: unit(vector) for text, vector in zip(texts, await model.embed(texts), strict=True)}
    finally:
        await model.close()
        await library.close()
    measured = [(pair, cosine(vectors[pair.one], vectors[pair.other])) for pair in pairs]
    return [fit(kind, measured) for kind in KINDS if any(pair.kind == kind for pair in pairs)]
