"""Prometheus exposition: counts and snapshots come in, metric families and samples go out."""
