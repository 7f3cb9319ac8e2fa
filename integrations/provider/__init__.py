"""The model library litellm behind one executor: calls come in, answers and classified errors go out."""
