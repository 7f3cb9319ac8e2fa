"""References from elsewhere: a case comes in, what a dataset, correction or file expects goes out."""
