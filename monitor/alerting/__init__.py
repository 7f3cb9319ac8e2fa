"""Alerting: verdicts come in, service statuses and alert events go out."""
