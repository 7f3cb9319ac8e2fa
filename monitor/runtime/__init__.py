"""The process: a configuration comes in, a running monitor whose parts are connected goes out."""
