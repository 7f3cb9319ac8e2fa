"""Words: texts come in, normalised words, numbers, dates, claims and matches go out."""
