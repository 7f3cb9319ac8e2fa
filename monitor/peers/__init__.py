"""Peers: closed traces come in; those that may lack spans held by another monitor wait here until they are whole."""
