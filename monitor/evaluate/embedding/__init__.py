"""The embedding evaluator: questions about meaning come in, answers by cosine similarity go out."""
