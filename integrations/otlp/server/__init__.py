"""Requests of OTLP exporters come in over HTTP and gRPC; decompressed bodies go out to consumers."""
