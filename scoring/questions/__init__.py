"""Questions: what a metric needs judged comes in, requests to evaluators and their answers go out."""
