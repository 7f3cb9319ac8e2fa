"""Forwarding: an export request comes in, the same bytes go upstream, upstream's response goes back."""
