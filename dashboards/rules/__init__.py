"""Prometheus rules as code: the alert declaration comes in, recording and alerting rules go out."""
