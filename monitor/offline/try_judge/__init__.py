"""Try judge: golden questions come in; each judge's answers and their faults go out."""
