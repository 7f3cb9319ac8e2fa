"""Runs: what is said of many verdicts together."""
