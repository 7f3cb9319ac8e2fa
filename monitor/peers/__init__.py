"""Closed traces come in; those that may lack spans which came to another monitor wait here until they are whole."""
