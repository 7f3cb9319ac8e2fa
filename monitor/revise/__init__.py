"""Traces whose reference came, changed or went after their spans were let go: read again from Langfuse, and judged."""
