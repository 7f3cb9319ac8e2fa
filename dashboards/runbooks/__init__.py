"""Runbooks: a page for each alert. Heads are generated between two marks; the text below them is written by hand."""
