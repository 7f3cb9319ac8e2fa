"""OpenTelemetry events and spans about evaluations: verdicts come in, OTLP requests go out."""
