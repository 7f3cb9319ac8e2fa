"""Rounds over the fleet's database: leases and shared data go out. While it is away, each monitor goes on alone."""
