"""Results come in and go, through the outbox, into a history of Parquet files."""
