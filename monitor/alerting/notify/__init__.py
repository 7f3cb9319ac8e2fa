"""Notifications: alert events come in, notices queued for each receiver go out."""
