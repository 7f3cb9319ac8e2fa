"""Cases: the format, and its lines in a file."""
