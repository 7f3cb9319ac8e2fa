"""Experiment: outputs of an application in this process come in, evaluations for Langfuse's SDK go out."""
