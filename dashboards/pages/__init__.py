"""Pages: snapshots and verdicts of a monitor come in, whole HTML pages that load nothing go out."""
