"""Runbooks: a page for each alert. Heads are generated between two marks; what is below them is written by hand."""
