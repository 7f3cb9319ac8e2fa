"""Replay: the past under another declaration: what would have been told, and what judging it cost."""
