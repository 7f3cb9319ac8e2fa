"""The pieces of a command's input come in, and go out worked on, in their order: here, in processes, or on Ray."""
