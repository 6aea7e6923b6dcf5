"""The type of a question by its wh-word."""

import re

OTHER = "other"
TYPES = ("who", "when", "what", "where", "how", "which", OTHER)
_WH_WORD = re.compile(r"\b(?:(who)(?:m|se|s)?|(when|what|where|how)s?|(which))\b", re.IGNORECASE)


def question_type(question: str) -> str:
    """Return one of `TYPES`: the question's first wh-word.

    It is the first whole word, in any case, of: who, whom, whose -> who; when; what; where; how; which. A contraction
    counts, with or without the apostrophe ("who's", "whats"). It need not be the first word: "in what year was he born"
    is what, "the actor who plays Avery" is who. The rule reads words, not grammar: "is Doctor Who British" is who.
    "why" is no type of the papers: "why did he go" is other.
    """
    match = _WH_WORD.search(question)
    return match[match.lastindex].lower() if match else OTHER
