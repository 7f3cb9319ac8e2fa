"""Runs: verdicts come in; figures over many verdicts go out."""
