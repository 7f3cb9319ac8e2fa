"""Verdicts and outcomes as Parquet in a folder or an object store: rows come in and files go out, and back."""
