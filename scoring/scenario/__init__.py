"""Scenarios: workflow contracts and JSON Schemas come in, checked contracts go out."""
