"""The HTTP API: requests come in, JSON, metrics and pages about the monitor's state go out."""
