"""OTLP: bytes of an export request come in, spans, log records and responses go out."""
