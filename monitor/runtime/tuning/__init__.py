"""Settings of interpreter and kernel: each is measured, can be switched off, and changes no result."""
