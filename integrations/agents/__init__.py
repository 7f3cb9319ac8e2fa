"""Agents: what a test set is run against, over HTTP or in this process."""
