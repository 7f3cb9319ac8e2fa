"""Evaluation: closed traces come in, results with their verdicts go out."""
