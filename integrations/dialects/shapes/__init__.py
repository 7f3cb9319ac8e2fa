"""Reading by shape: unknown attributes by the last words of their names and the shape of their values."""
