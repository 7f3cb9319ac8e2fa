"""Agents: the targets of a test set, over HTTP or in this process."""
