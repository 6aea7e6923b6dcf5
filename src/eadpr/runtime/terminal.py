"""Text for a terminal, which would obey the escapes in a passage."""


def printable(text: str) -> str:
    """Return the text with all but its line ends that cannot be printed escaped as in Python."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
