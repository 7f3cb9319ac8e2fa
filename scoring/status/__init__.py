"""Status: estimates come in, the status of a service and snapshots for people go out."""
