"""Declared rubrics: a rubric written as data comes in, a ``Rubric`` like the built-in ones goes out."""
