"""Calibration: verdicts and people's labels come in; the judge's reliability and the right thresholds go out."""
