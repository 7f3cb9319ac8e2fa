"""Checks: plain rules on a case. A declaration comes in, a function of a case goes out."""
