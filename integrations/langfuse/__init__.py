"""Langfuse's API: traces, references, labels and scores come in, scores and queue items go out."""
