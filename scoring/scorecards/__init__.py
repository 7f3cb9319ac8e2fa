"""Scorecards: the figures of a run come in; the release decision and its page go out."""
