"""The monitor: configuration and OTLP exports come in, verdicts, metrics, scores and alerts go out."""
