"""Judge models: a prompt and an answer schema come in, the model's answer and its usage go out."""
