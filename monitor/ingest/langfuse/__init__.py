"""Ingest from Langfuse: listings of its API come in, traces as OTLP for the same intake go out."""
