"""When a passage holds an answer, exactly as DPR decides it, and where in the passage the answer stands.

Answers are matched in the text of a passage, never in its title. Facts and golden values: DPR's `qa_validation` and
`tokenizers` (Karpukhin et al., 2020); for `exact_match_normal` SQuAD's evaluation (Rajpurkar et al., 2016).
"""

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import regex

from eadpr.storage.records import Span

KINDS = ("string", "regex", "yes-no")
_FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE
_TOKEN = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])", _FLAGS)
_ASCII_TOKEN = re.compile(r"[0-9A-Za-z]+|[!-~]")  # what _TOKEN is on ASCII text, several times faster
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
PASSAGES_KEPT = 65_536  # tokenised passages that an AnswerMatcher keeps, about 1.5 kB each


def nfd(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFD", text)


def tokens(text: str) -> list[str]:
    """Runs of letters, digits and marks, and every other visible character alone, of the NFD text; each lower-cased."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    # Lower-casing comes after the cut: of a whole text it would give other final sigmas.
    return [match.group().lower() for match in _TOKEN.finditer(nfd(text))]


def has_answer(answers: Sequence[str], text: str, kind: str = "string") -> bool:
    """Whether `text` holds one of `answers`.

    `string`: the answer's tokens stand in the text's tokens side by side; an answer without any token is held by every
    text. `regex`: the NFD pattern is found in the NFD text, ignoring case, `^` and `$` at every line; a pattern that
    does not compile is held by none. `yes-no`: held by none, since the word yes in a text says nothing.
    """
    if _checked(kind) == "yes-no":
        return False
    if kind == "regex":
        return any(_found(answer, nfd(text)) for answer in answers)
    folded = _folded(text)  # few texts hold so much as an answer's longest token; only those are cut into tokens
    likely = [answer for answer in answers if _longest(answer) in folded]
    held = padded(text) if likely else ""
    return any(_needle(answer) in held for answer in likely)


def answer_spans(answers: Sequence[str], text: str, kind: str = "string") -> list[Span]:
    """Where the answers stand in `text`: every match, in order, overlapping ones merged.

    Offsets count characters of `text` as given (not of its NFD form); a character of which a match covers a part
    belongs to the span. Matches of nothing (an answer without tokens, an empty match, white space alone) have no span.
    """
    if _checked(kind) == "yes-no":
        return []
    find = _regex_matches if kind == "regex" else _token_matches
    nfd_text = nfd(text)
    found = [Span(start, end) for start, end in find(answers, nfd_text) if nfd_text[start:end].strip()]
    if not found:
        return []
    if unicodedata.is_normalized("NFD", text):
        return merge(found, touching=False)
    origin = _origin(text)
    found = [Span(min(origin[start:end]), max(origin[start:end]) + 1) for start, end in found]
    return merge(found, touching=False)


def exact_match_normal(answer: str) -> str:
    """Lower case, without punctuation (ASCII), articles and spare white space: SQuAD's normal form for exact match."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


class AnswerMatcher:
    """`has_answer` for many questions and the passages of their rankings, many times faster than pair by pair.

    Every answer and every passage is tokenised once while it stays among the last `kept`, and a passage only when the
    longest token of an answer occurs in it at all. Tokens hold no spaces, so tokens joined by spaces, with one at
    either end, turn the search for a sub-list into one for a substring.
    """

    def __init__(self, *, kept: int = PASSAGES_KEPT) -> None:
        self._padded = lru_cache(maxsize=kept)(padded)
        self._folded = lru_cache(maxsize=kept)(_folded)
        self._nfd = lru_cache(maxsize=kept)(nfd)

    def matches(self, answers: Sequence[str], texts: Sequence[str], kind: str = "string") -> np.ndarray:
        """Shape (len(texts),), bool: entry i is `has_answer(answers, texts[i], kind)`."""
        if _checked(kind) == "yes-no":
            return np.zeros(len(texts), dtype=bool)
        if kind == "regex":
            held = [any(_found(answer, self._nfd(text)) for answer in answers) for text in texts]
        else:
            needles = [(_longest(answer), _needle(answer)) for answer in dict.fromkeys(answers)]
            held = [self._holds(text, needles) for text in texts]
        return np.array(held, dtype=bool)

    def _holds(self, text: str, needles: list[tuple[str, str]]) -> bool:
        folded = self._folded(text)
        return any(longest in folded and needle in self._padded(text) for longest, needle in needles)


def _checked(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"answer_kind is {kind!r}, expected one of {', '.join(KINDS)}")
    return kind


def needles(answers: Sequence[str], kind: str) -> list[str]:
    """What is sought for the answers: of strings the needles for `padded` texts, patterns as they are, nothing for a
    yes or no."""
    if _checked(kind) == "yes-no":
        return []
    return list(dict.fromkeys(answers if kind == "regex" else map(_needle, answers)))


def padded(text: str) -> str:
    """The tokens joined by spaces, with one at either end; holds a string where it contains its needle."""
    return f" {' '.join(tokens(text))} "


@lru_cache(maxsize=PASSAGES_KEPT)
def _needle(answer: str) -> str:
    found = tokens(answer)
    return f" {' '.join(found)} " if found else ""


def _folded(text: str) -> str:
    """Lower case in which no sigma is final: whether one is depends on where the text is cut into tokens."""
    return nfd(text).lower().replace("ς", "σ")


@lru_cache(maxsize=PASSAGES_KEPT)
def _longest(answer: str) -> str:
    return max(tokens(answer), key=len, default="").replace("ς", "σ")


@lru_cache(maxsize=PASSAGES_KEPT)
def compiled(pattern: str) -> regex.Pattern | None:
    """None for one that is no pattern in its NFD form."""
    try:
        return regex.compile(nfd(pattern), _FLAGS)
    except (regex.error, ValueError, RecursionError):  # the latter two for flags that clash and for deep nesting
        return None


def _found(pattern: str, nfd_text: str) -> bool:
    found = compiled(pattern)
    return found is not None and found.search(nfd_text) is not None


def _token_matches(answers: Sequence[str], nfd_text: str) -> Iterator[tuple[int, int]]:
    places = [(match.start(), match.end()) for match in _TOKEN.finditer(nfd_text)]
    words = [nfd_text[start:end].lower() for start, end in places]
    for answer in answers:
        sought = tokens(answer)
        if not sought:
            continue
        for i in range(len(words) - len(sought) + 1):
            if words[i : i + len(sought)] == sought:
                yield places[i][0], places[i + len(sought) - 1][1]


def _regex_matches(answers: Sequence[str], nfd_text: str) -> Iterator[tuple[int, int]]:
    for pattern in map(compiled, answers):
        if pattern is not None:
            yield from (match.span() for match in pattern.finditer(nfd_text))


def _origin(text: str) -> list[int]:
    """For every character of the NFD form of `text` the index of the character of `text` that it comes from."""
    pairs = [(i, part) for i, character in enumerate(text) for part in unicodedata.normalize("NFD", character)]
    origin: list[int] = []
    marks: list[tuple[int, int]] = []  # (canonical class, index): NFD sorts each run of combining marks, stably
    for i, part in pairs:
        canonical_class = unicodedata.combining(part)
        if canonical_class:
            marks.append((canonical_class, i))
        else:
            origin += [index for _, index in sorted(marks, key=lambda mark: mark[0])]
            marks.clear()
            origin.append(i)
    return origin + [index for _, index in sorted(marks, key=lambda mark: mark[0])]


def merge(spans: Iterable[Span], *, touching: bool = True) -> list[Span]:
    """The spans sorted and disjoint: those that overlap, or `touching` touch, become one."""
    merged: list[Span] = []
    for start, end in sorted((s.start, s.end) for s in spans):
        if merged and start < merged[-1].end + touching:
            merged[-1] = Span(merged[-1].start, max(end, merged[-1].end))
        else:
            merged.append(Span(start, end))
    return merged
