"""Results: the four outcomes of a metric, and the bands that grade a score."""
