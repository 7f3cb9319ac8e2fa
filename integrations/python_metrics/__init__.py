"""Functions of somebody's own: in goes a case, out comes a result, from a process that may be killed at any time."""
