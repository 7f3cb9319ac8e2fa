"""Calibration: verdicts and what people label in; how far a judge is to be believed, and the right threshold, out."""
