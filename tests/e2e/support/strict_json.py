"""A strict JSON reader (RFC 8259): the base system's Python comes without its own."""

import re

_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BLANK = b" \t\r\n"
_ESCAPES = {b'"': '"', b"\\": "\\", b"/": "/", b"b": "\b", b"f": "\f", b"n": "\n", b"r": "\r",
            b"t": "\t"}
_WORDS = {b"true": True, b"false": False, b"null": None}


class NotJson(AssertionError):
    pass


class _Reader:
    def __init__(self, text):
        self.text = text
        self.at = 0

    def refuse(self, why):
        around = self.text[max(0, self.at - 30):self.at + 30]
        raise NotJson(f"no JSON at byte {self.at}, {why}: {around!r}")

    def blank(self):
        while self.at < len(self.text) and self.text[self.at] in _BLANK:
            self.at += 1

    def next(self):
        return self.text[self.at:self.at + 1]

    def take(self, word):
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def value(self):
        self.blank()
        first = self.next()
        if first == b"{":
            return self.object()
        if first == b"[":
            return self.array()
        if first == b'"':
            return self.string()
        for word, meaning in _WORDS.items():
            if self.take(word):
                return meaning
        found = _NUMBER.match(self.text, self.at)
        if not found:
            self.refuse("a value was expected")
        self.at = found.end()
        plain = found[2] is None and found[3] is None
        return int(found[0]) if plain else float(found[0])

    def object(self):
        out = {}
        self.take(b"{")
        self.blank()
        if self.take(b"}"):
            return out
        while True:
            self.blank()
            key = self.string()
            if key in out:
                self.refuse(f"the key {key!r} stands there twice")
            self.blank()
            if not self.take(b":"):
                self.refuse("a colon was expected")
            out[key] = self.value()
            self.blank()
            if self.take(b"}"):
                return out
            if not self.take(b","):
                self.refuse("a comma was expected")

    def array(self):
        out = []
        self.take(b"[")
        self.blank()
        if self.take(b"]"):
            return out
        while True:
            out.append(self.value())
            self.blank()
            if self.take(b"]"):
                return out
            if not self.take(b","):
                self.refuse("a comma was expected")

    def string(self):
        if not self.take(b'"'):
            self.refuse("a string was expected")
        units = []
        start = self.at
        while True:
            c = self.next()
            if c == b"" or c < b" ":
                self.refuse("a string does not end, or holds a control character")
            if c in (b'"', b"\\"):
                units.append(self.text[start:self.at].decode("utf-8"))
                self.at += 1
                if c == b'"':
                    break
                units.append(self.escape())
                start = self.at
            else:
                self.at += 1
        # Surrogate pairs become the characters that they stand for; a lone one is refused.
        return "".join(units).encode("utf-16", "surrogatepass").decode("utf-16")

    def escape(self):
        c = self.next()
        self.at += 1
        if c in _ESCAPES:
            return _ESCAPES[c]
        digits = self.text[self.at:self.at + 4]
        if c != b"u" or not re.fullmatch(rb"[0-9a-fA-F]{4}", digits):
            self.refuse("an unknown escape")
        self.at += 4
        return chr(int(digits, 16))


def parse(text):
    """The one document that `text` (bytes) is."""
    reader = _Reader(text)
    out = reader.value()
    reader.blank()
    if reader.at != len(text):
        reader.refuse("one document was expected")
    return out
