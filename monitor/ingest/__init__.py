"""Ingest: bytes of export requests come in, sampled, committed spans and closed traces go out."""
