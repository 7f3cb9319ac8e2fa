"""Outline: a page as a browser parses it, whose tags are all closed and which holds no code or style of its own."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "wbr", "line", "rect", "circle", "polygon", "polyline", "input"}


class Outline(HTMLParser):
    """Tags, attributes and text of a page, with what a browser would run or load."""

    def __init__(self, page: str):
        super().__init__()
        self.tags, self.loads, self.text, self.open = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag != "wbr":
            self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name != "style", (tag, value)
            if name in ("href", "src", "action", "xlink:href"):
                self.loads.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
