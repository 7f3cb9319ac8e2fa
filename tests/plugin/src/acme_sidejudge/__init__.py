"""A plugin of sidejudge."""
