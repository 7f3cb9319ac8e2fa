"""Help: the Markdown of the repository comes in, pages of the documentation that the monitor serves go out."""
