"""Run: the cosines of all pairs by a model, and the thresholds that are fitted to them."""

from __future__ import annotations

from collections.abc import Sequence

from sidejudge.integrations.provider.library import LiteLLM
from sidejudge.monitor.config.evaluators import EmbeddingSection
from sidejudge.monitor.evaluate.embedding.build import embedding_model
from sidejudge.scoring.evaluators.vector import cosine, unit
from sidejudge.scoring.runs.embedding_calibration import KINDS, FittedThreshold, MeaningPair, fit


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
