"""What kind of thing a question asks for, by its wh-word."""

import re

OTHER = "other"
TYPES = ("who", "when", "what", "where", "how", "which", OTHER)
_WH_WORD = re.compile(r"\b(?:(who)(?:m|se|s)?|(when|what|where|how)s?|(which))\b", re.IGNORECASE)


def question_type(question: str) -> str:
    """One of `TYPES`: the question's first wh-word.

    The rule: find the first whole word of the question, in any case, that is one of
    who, whom, whose -> who; when -> when; what -> what; where -> where; how -> how; which -> which; none of them ->
    other. A contraction counts as its wh-word, with or without the apostrophe ("who's", "whats"). It is the first
    wh-word, not the first word: "in what year was he born" is what, "the actor who plays Avery" is who. The rule reads
    words, not grammar: in "is Doctor Who British" it finds who. "why" is no type in the papers and no wh-word here:
    "why did he go" is other.
    """
    found = _WH_WORD.search(question)
    return found[found.lastindex].lower() if found else OTHER
