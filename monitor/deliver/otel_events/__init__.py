"""Judge calls and results come in; own traces and events go out to one OTLP endpoint."""
