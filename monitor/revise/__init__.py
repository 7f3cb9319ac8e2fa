"""Changed references of traces whose spans are gone come in; revisions, judged on spans that are read again, go out."""
