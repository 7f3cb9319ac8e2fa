"""Prune: the scores that are in Langfuse come in, those that ``sinks.langfuse.scores`` does not ask for are deleted."""
