"""Verdicts come in through the outbox; calls of a sink that an installed package brings go out."""
