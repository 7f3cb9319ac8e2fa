"""The scorecard for people: as Markdown in the form of the seed's template, and as a page."""
