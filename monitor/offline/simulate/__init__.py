"""Replay: verdicts of the past and another declaration come in, the alerts and costs that it would have had go out."""
