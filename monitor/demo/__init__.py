"""The demonstration: recorded traffic comes in, fresh requests to a monitor and a terminal report go out."""
