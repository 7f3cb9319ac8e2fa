"""Trace results come in and are committed in one transaction; scores, events, lines and notices go out to sinks."""
