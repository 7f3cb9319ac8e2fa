"""The OTLP encoding: protobuf or JSON bytes come in, spans and log records go out, and back."""
