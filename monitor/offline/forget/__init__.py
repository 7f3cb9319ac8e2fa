"""A store and a person's request to be forgotten come in; the traces that are to be erased go out."""
