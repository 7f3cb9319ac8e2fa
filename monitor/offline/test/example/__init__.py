"""An example agent, for the test set beside it."""
