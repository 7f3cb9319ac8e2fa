"""Calibrate embedding: pairs of texts in, thresholds of the configured model out, and into its configuration."""
