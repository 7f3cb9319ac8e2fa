"""The Langfuse sink: committed scores come in, delivered and confirmed scores go out."""
