"""Questions: metrics come in, their questions to evaluators and the answers go out."""
