"""Sessions: committed turns come in, conversations that have ended go out."""
