"""Results come in and go, through the outbox, into the archive of the fleet."""
