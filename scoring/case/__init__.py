"""The case: spans of a trace come in, one case with the fields that rubrics read goes out."""
