"""External references: a case comes in; the expected outcome from a dataset, correction or file goes out."""
