"""Peers: closed traces come in; a trace with spans at another monitor waits here until it is whole."""
