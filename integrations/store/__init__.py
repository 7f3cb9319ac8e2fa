"""The SQLite store: chunks, results and queued deliveries come in, and are committed before a call returns."""
