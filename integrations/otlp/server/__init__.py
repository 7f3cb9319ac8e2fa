"""Receivers for OTLP over HTTP and gRPC: requests come in, admitted bodies and responses go out."""
