"""Scorecards: the figures of a run in; whether it may be released, and the page that says so, out."""
