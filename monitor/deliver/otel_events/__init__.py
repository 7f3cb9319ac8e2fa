"""The OpenTelemetry sink: committed verdicts and judge calls come in, events and spans go out."""
