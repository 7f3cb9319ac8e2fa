"""Statistics: observations come in, estimates, intervals and evidence go out."""
