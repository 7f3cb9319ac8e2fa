"""Backfill: a time range of Langfuse comes in, verdicts and scores on its traces go out."""
