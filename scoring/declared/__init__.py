"""Declared rubrics: in comes what somebody wrote as data, out goes a ``Rubric`` like those that ship."""
