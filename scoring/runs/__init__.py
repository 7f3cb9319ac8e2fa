"""Runs: verdicts in; figures of many verdicts together out."""
