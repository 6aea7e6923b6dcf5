"""Text for a terminal, which would obey the escapes in a passage."""

import unicodedata

KEPT = "\n\t\u200c\u200d"  # the last two join letters, in Persian and Hindi among others


def printable(text: str) -> str:
    """Return the text with what is neither printed nor a space nor KEPT escaped as in Python."""
    return "".join(
        c if c.isprintable() or c in KEPT or unicodedata.category(c) == "Zs" else repr(c)[1:-1] for c in text
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
