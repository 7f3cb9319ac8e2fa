"""What the monitors of a fleet share: transactions come in, rows of a PostgreSQL go out."""
