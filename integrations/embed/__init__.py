"""Embedding models: texts come in, unit vectors go out, from a model in this process or from an endpoint."""
