"""Runs of an application, with a word on which were good, come in; a scenario that good runs keep to comes out."""
