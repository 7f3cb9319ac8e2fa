"""Alerts: statuses and observed facts come in, conditions, transitions and alert events go out."""
