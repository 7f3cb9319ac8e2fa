"""Delivery: results of evaluations come in, one committed transaction and deliveries to each sink go out."""
