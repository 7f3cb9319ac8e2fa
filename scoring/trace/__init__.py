"""The trace: spans in one normal form, as a tree, with notes on unread contents."""
