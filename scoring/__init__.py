"""Scoring, pure: cases come in, results, verdicts, statuses and notices go out; no I/O, clock or randomness."""
