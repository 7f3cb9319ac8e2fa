"""Rounds over the fleet's database come in, leases and what other monitors share go out; away, each goes on alone."""
