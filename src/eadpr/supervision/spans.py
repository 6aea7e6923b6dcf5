"""Cutting a passage into sentence-like spans with character offsets, offline and by rule, and taking spans out of it.

No model decides anything here: the rules are the usual ones for English prose, so that two machines cut the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

from eadpr.records import Passage, Span

Segmenter = Literal["sentence", "clause"]

SHORT, ENOUGH = 3, 6  # tokens: a clause of at most SHORT grows until it has more than ENOUGH (EADPR's published code)
BRACKETED = 200  # characters: no cut inside a pair of brackets closer than this

# A stop: the marks, then whatever closes with them. Full-width marks need no space behind them.
_STOP = re.compile(r"[.!?…]+[\"'”’»)\]}]*(?=\s)|[。！？]+[”’」』）]*|\n\s*\n|\u2029")
_CLAUSE = re.compile(r"[,;:—](?=\s)|[，；：]")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD_BEFORE = re.compile(r"[^\s(\[{\"“‘'«]+$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+$")
_OPENS, _CLOSES = "([{", ")]}"

# Never the end of a sentence: a name or a number follows.
_BINDS = frozenset(
    "mr mrs ms mx dr prof rev fr hon gov gen col maj capt cmdr lt sgt cpl adm pres sen rep st ste mt ft vs viz cf ca c "
    "fig figs vol vols pp p ed eds trans art ch sec e.g i.e al op r b d fl messrs mme mlle approx est".split()
)
# The end of a sentence only before a word that often starts one.
_MAY_END = frozenset(
    "jr sr inc ltd co corp bros llc plc etc esq ph.d m.d b.a m.a d.c a.m p.m b.c a.d jan feb mar apr jun jul aug sep sept "
    "oct nov dec mon tue tues wed thu thur thurs fri sat sun ave blvd rd dept univ assn no nos sq km cm mm kg lb lbs oz min".split()
)
_STARTS = frozenset(
    "the a an it its he his she her they their we our you your i this that these those there here in on at by for from "
    "with as after before during since while when where although though however because if but and or also both many "
    "most some several one two another other each following later today no not to of under according despite".split()
)


def _ends_sentence(text: str, stop: re.Match[str]) -> bool:
    marks = stop.group()
    if not marks.startswith("."):
        return marks[0] not in "!?…" or not text[stop.end() :].lstrip()[:1].islower()  # "Yahoo! is"
    following = text[stop.end() : stop.end() + 40].lstrip()
    if following[:1].islower() or following[:1] in ",;:)":
        return False
    found = _WORD_BEFORE.search(text, max(0, stop.start() - 40), stop.start())
    word = found.group().lower() if found else ""
    if marks.startswith("..") or not word:
        return True
    first = re.match(r"\w*", following.lstrip("\"“‘'«([")).group().lower()
    if word in _BINDS and marks == ".":
        return False
    if word in _MAY_END or _INITIALS.match(word + "."):
        return first in _STARTS
    return True


def _bracketed(text: str) -> list[Span]:
    """Outermost pairs of brackets at most BRACKETED apart, in order; unmatched brackets are ignored."""
    opened: list[int] = []
    pairs: list[Span] = []
    for match in re.finditer(r"[()\[\]{}]", text):
        if match.group() in _OPENS:
            opened.append(match.start())
        elif opened and _OPENS.index(text[opened[-1]]) == _CLOSES.index(match.group()):
            start = opened.pop()
            if match.end() - start <= BRACKETED:
                while pairs and pairs[-1].start > start:
                    pairs.pop()
                pairs.append(Span(start, match.end()))
    return pairs


def _outside(cuts: Iterable[int], pairs: Sequence[Span]) -> list[int]:
    kept, index = [], 0
    for cut in cuts:
        while index < len(pairs) and pairs[index].end <= cut:
            index += 1
        if index == len(pairs) or cut <= pairs[index].start:
            kept.append(cut)
    return kept


def _between(text: str, cuts: Iterable[int]) -> list[Span]:
    """The stretches between cuts, without outer white space; empty ones are left out."""
    spans = []
    for start, end in pairwise((0, *cuts, len(text))):
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        if piece.strip():
            spans.append(Span(start, start + len(piece.strip())))
    return spans


def sentences(text: str) -> list[Span]:
    """Sorted, disjoint spans that hold every character but white space exactly once."""
    cuts = [stop.end() for stop in _STOP.finditer(text) if _ends_sentence(text, stop)]
    return _between(text, _outside(cuts, _bracketed(text)))


def clauses(text: str, within: Iterable[Span] | None = None) -> list[Span]:
    """Sentences cut further at commas, semicolons, colons and dashes; short pieces join what follows (methods.md 3).

    A piece of at most SHORT tokens takes in the following ones until it has more than ENOUGH; what is left over at the end
    joins the last span.
    """
    pieces: list[Span] = []
    for start, end in sentences(text) if within is None else within:
        inner = text[start:end]
        cuts = _outside((match.end() for match in _CLAUSE.finditer(inner)), _bracketed(inner))
        pieces += [Span(start + s, start + e) for s, e in _between(inner, cuts)]
    merged: list[Span] = []
    growing: Span | None = None
    for piece in pieces:
        joined = Span(growing.start, piece.end) if growing else piece
        tokens = len(_TOKEN.findall(text[joined.start : joined.end]))
        if tokens <= (ENOUGH if growing else SHORT):
            growing = joined
        else:
            merged.append(joined)
            growing = None
    if growing:
        merged = [*merged[:-1], Span(merged[-1].start, growing.end)] if merged else [growing]
    return merged


def segment(passage: Passage, segmenter: Segmenter) -> list[Span]:
    """The passage's spans; sentences given by the source win over the rules."""
    given = None if passage.sentences is None else [s for s in passage.sentences if passage.text[s.start : s.end].strip()]
    if segmenter == "clause":
        return clauses(passage.text, given)
    return sentences(passage.text) if given is None else given


def merge(spans: Iterable[Span]) -> list[Span]:
    """Sorted and disjoint; overlapping and touching spans become one."""
    merged: list[Span] = []
    for start, end in sorted((s.start, s.end) for s in spans):
        if merged and start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(end, merged[-1].end))
        else:
            merged.append(Span(start, end))
    return merged


def overlapping(spans: Sequence[Span], targets: Iterable[Span]) -> list[int]:
    """Indices of the spans that share a character with any of the targets."""
    targets = merge(targets)
    return [i for i, s in enumerate(spans) if any(s.start < t.end and t.start < s.end for t in targets)]


def without(text: str, spans: Iterable[Span]) -> str:
    """The text with the spans taken out; empty when they were all of it.

    The ends of each gap are joined by one space, or by nothing where the text had no space on either side, where a closing mark
    would follow a space ("in Paris, France" becomes "in, France") or where an opening bracket would be followed by one.
    """
    kept, position = "", 0
    for start, end in [*merge(spans), Span(len(text), len(text))]:
        kept = _join(kept, text[position:start]) if position else text[:start]
        position = max(position, end)
    return kept.strip()


def _join(left: str, right: str) -> str:
    tight_left, tight_right = left.rstrip(), right.lstrip()
    if not tight_left or not tight_right:
        return tight_left + tight_right if tight_left else tight_right
    apart = len(tight_left) < len(left) or len(tight_right) < len(right)
    if not apart or tight_right[0] in ",.;:!?)]}…" or tight_left[-1] in _OPENS:
        return tight_left + tight_right
    return f"{tight_left} {tight_right}"
