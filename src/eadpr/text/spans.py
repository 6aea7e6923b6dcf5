"""Cut a passage into sentences with character offsets, offline and by rule, and take spans out of it.

No model decides here, so that machines cut alike: the rules are usual ones of English, with stops of other scripts.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from eadpr.storage.records import Passage, Span
from eadpr.text.answers import STOPS, UNSPACED, merge

BRACKETED = 200  # characters: no cut inside a pair of brackets closer than this
RUN = 100  # characters of a script without spaces, with no mark between them, that are one sentence at most

# Marks of scripts other than Latin. Greek asks with a semicolon.
_MARK = rf"(?:[{STOPS}]|．(?!\d)|(?<=[ά-ώ]{{2}});(?=\s+[Ά-ώ]))"
# A stop: the marks, then whatever closes with them and a note's number. Those of other scripts need no space behind.
# Else an item of a list, a table's row, or a key before its value begins a sentence.
_STOP = re.compile(
    r"(?m)(?<!^\d)(?<!^\d\d)[.!?…]+[\"'”’»)\]}]*(?:\[\w{1,4}\]|[¹²³⁰-⁹])*(?=[\s\u200b]|</?[a-z])"
    r"|(?<=[a-zß-ÿа-ё]{2})[.!?](?=[A-ZÀ-ÞЀ-Я][a-zß-ÿа-ё]|[A-Z]\s)|(?<=[א-תء-ۓ]{2})[.!](?=[א-תء-ۓ]{2})"
    # 「…。」と: the quote's sentence goes on. (A possessive + would do for (?!_MARK), but is broken in Python 3.11.2.)
    rf"|{_MARK}+(?!{_MARK})(?![」』]+[\u3041-\u309f])[”’」』）\"»)]*|\n\s*\n|\u2029"
    r"|\n(?=\s*(?:[-*•–●▪◦|]|\(?(?:\d\d?[.)]|[a-z]\)))\s)|\n(?=\w[^\n:.!?]{0,40}:\s)"
    rf"|(?<=[\u0e00-\u0eff])\s+(?=[\u0e00-\u0eff])|[{UNSPACED}]{{{RUN}}}"  # Thai and Lao have no marks
)
_WORD = re.compile(r"\w")
_CAPITAL = re.compile(r"[.!?]\s+[A-ZÀ-ÞΆ-ΩА-Я]")  # a sentence that begins with one; without any a text is uncased
_PREVIOUS_WORD = re.compile(r"[^\s(\[{\"“‘'«]+$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+$")
_OPENS, _CLOSES = "([{「『（", ")]}」』）"
_BRACKET = re.compile(f"[{re.escape(_OPENS + _CLOSES)}]")
WORDS = tomllib.loads(Path(__file__).with_name("abbreviations.toml").read_text(encoding="utf-8"))
_BEFORE_NAME, _BEFORE_NUMBER, _AFTER_ORDINAL, _MAY_END, _STARTS = (
    frozenset(WORDS[kind].split()) for kind in ("before_name", "before_number", "after_ordinal", "may_end", "starts")
)


def _ends_sentence(text: str, stop: re.Match[str], uncased: bool) -> bool:
    """Decide if a stop ends a sentence; in an `uncased` text a lower-case letter may begin the next one."""
    marks = stop.group()
    following = text[stop.end() : stop.end() + 40].lstrip()
    if not marks.startswith("."):
        return marks[0] not in "!?…" or uncased or not following[:1].islower()  # "Yahoo! is"
    if (following[:1].islower() and not uncased) or following[:1] in tuple(",.;:)"):
        return False
    previous = _PREVIOUS_WORD.search(text, max(0, stop.start() - 40), stop.start())
    word = previous.group().lower() if previous else ""
    if not word or marks.startswith(".."):
        return True
    if word in _BEFORE_NAME or (word in _BEFORE_NUMBER and following[:1].isdigit()):
        return False
    if word.isdigit() and len(word) <= 2 and re.match(r"\w*", following).group().lower() in _AFTER_ORDINAL:
        return False
    if word in _MAY_END or _INITIALS.match(word + "."):
        first = re.match(r"\w*(?!\w*\.)", following.lstrip("\"“‘'«(["))  # "J. A. Hill": not the article "A"
        # "iPhone sales rose at Apple Inc. and fell": such a text counts as uncased, though it has capitals.
        begins = not following[:1].islower() or text.islower()
        return begins and first is not None and first.group().lower() in _STARTS
    return True


def _bracketed(text: str) -> list[Span]:
    """Return the outermost pairs of brackets at most BRACKETED apart, in order; unmatched brackets are ignored."""
    opened: list[int] = []
    pairs: list[Span] = []
    for match in _BRACKET.finditer(text):
        if match.group() in _OPENS:
            opened.append(match.start())
        elif opened and _OPENS.index(text[opened[-1]]) == _CLOSES.index(match.group()):
            start = opened.pop()
            if match.end() - start <= BRACKETED:
                while pairs and pairs[-1].start > start:
                    pairs.pop()
                pairs.append(Span(start, match.end()))
    return pairs


def _outside(cuts: Iterable[int], brackets: Sequence[Span]) -> list[int]:
    """Return the cuts that lie in no pair of brackets."""
    outside, index = [], 0
    for cut in cuts:
        while index < len(brackets) and brackets[index].end <= cut:
            index += 1
        if index == len(brackets) or cut <= brackets[index].start:
            outside.append(cut)
    return outside


def stripped(text: str, span: Span) -> Span:
    """Return the span without white space at its ends; a span of white space alone shrinks to its end."""
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    return Span(start, start + len(piece.strip()))


def sentences(text: str) -> list[Span]:
    """Return sorted, disjoint spans that hold every character but white space exactly once."""
    uncased = text.islower() or (text.lstrip()[:1].islower() and not _CAPITAL.search(text))
    cuts = [stop.end() for stop in _STOP.finditer(text) if _ends_sentence(text, stop, uncased)]
    if not cuts and not re.search(r"[.!?…]", text):
        cuts = [match.end() for match in re.finditer("\n", text)]  # lines are all that parts such a text
    spans: list[Span] = []
    for edges in pairwise((0, *_outside(cuts, _bracketed(text)), len(text))):
        span = stripped(text, Span(*edges))
        if span.start == span.end:
            continue
        if spans and not _WORD.search(text, span.start, span.end):  # ". ." of an ellipsis belongs to what it follows
            spans[-1] = Span(spans[-1].start, span.end)
        else:
            spans.append(span)
    return spans


def segment(passage: Passage) -> list[Span]:
    """Cut the passage into sentences, without blank ones; sentences of the source win over the rules."""
    return [span for span in sentences_of(passage) if passage.text[slice(*span)].strip()]


def sentences_of(passage: Passage) -> list[Span]:
    """Return the source's sentences, blank ones too, as HotpotQA counts them, or sentences by rule if it gave none."""
    return sentences(passage.text) if passage.sentences is None else passage.sentences


def overlapping(spans: Sequence[Span], targets: Iterable[Span]) -> list[int]:
    """Return the indices of the spans that share a character with any of the targets."""
    targets = merge(targets)
    return [i for i, s in enumerate(spans) if any(s.start < t.end and t.start < s.end for t in targets)]


def similar(first: int, second: int) -> bool:
    """Return true if neither length is more than twice the other."""
    return first <= 2 * second and second <= 2 * first


def without(text: str, spans: Iterable[Span]) -> str:
    """Return the text without the spans; empty if they were all of it.

    The ends of each gap are joined by one space, or by nothing where the text had no space on either side, where a
    closing mark would follow the space ("in Paris, France" becomes "in, France") or an opening bracket stand before it.
    """
    rest, position = "", 0
    spaced = (Span(len(text[: span.start].rstrip()), len(text) - len(text[span.end :].lstrip())) for span in spans)
    for start, end in merge(spaced):
        rest = _join(rest, text[position:start])
        if text[start:end][:1].isspace() or text[start:end][-1:].isspace():
            rest += " "
        position = end
    return _join(rest, text[position:]).strip()


def _join(start: str, end: str) -> str:
    """Join two texts; a space at the end of `start` goes before a closing mark and after an opening bracket."""
    if end[:1] in tuple(",.;:!?)]}…") or start.rstrip()[-1:] in tuple(_OPENS):
        return start.rstrip() + end
    return start + end
