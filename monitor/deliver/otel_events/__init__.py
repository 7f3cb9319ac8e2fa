"""What judging does and what it finds comes in; own traces and events go out to one OTLP endpoint."""
