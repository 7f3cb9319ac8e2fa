"""The trace: spans in one normal form, as a tree, with what a dialect could not read noted."""
