"""Answer matching as DPR decides it, and the places of answers in a passage.

Answers are matched in the text of a passage, never in its title. The rules follow DPR's `qa_validation` and
`tokenizers` (Karpukhin et al., 2020), but for scripts without spaces, where each character is a token.
"""

import re
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
import regex

from eadpr.storage.records import Span

Array, Places = np.ndarray, Iterator[tuple[int, int]]
KINDS = ("string", "regex", "yes-no")
FLAGS = regex.IGNORECASE | regex.UNICODE | regex.MULTILINE
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana and Han.
UNSPACED = "\u0e00-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17e0-\u17ff\u3005\u3007\u3041-\u309f\u30a1-\u30fa"
UNSPACED += "\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
STOPS = "。！？｡؟۔।॥།᠃։።፧။។៕"  # end a sentence in other scripts than Latin, with a space behind them or without
_WORDS = r"[\p{L}\p{N}\p{M}]"
_TOKEN = regex.compile(rf"(?V1)[{_WORDS}&&[{UNSPACED}]]\p{{M}}*|[{_WORDS}--[{UNSPACED}]]+|[^\p{{Z}}\p{{C}}]")
_ASCII_TOKEN = re.compile(r"[0-9A-Za-z]+|[!-~]")  # equal to _TOKEN on ASCII text, several times faster
SECONDS = 0.5  # of the processor, for a pattern in one text
CACHED = 65_536  # tokenised passages in an AnswerMatcher's cache, about 1.5 kB each


def nfd(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFD", text)


def tokens(text: str) -> list[str]:
    """Split the NFD text into lower-cased runs of letters, digits and marks, and single other visible characters, as
    those of scripts without spaces."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    # Lower-case each token: a whole text would have other final sigmas.
    return [match.group().lower() for match in _TOKEN.finditer(nfd(text))]


def has_answer(answers: Sequence[str], text: str, kind: str = "string") -> bool:
    """Decide if `text` holds one of `answers`.

    `string`: the answer's tokens stand side by side in the text's tokens; every text holds an answer without tokens.
    `regex`: the NFD pattern matches in the NFD text, ignoring case, with `^` and `$` at every line; no text holds a
    pattern that does not compile, or that searches it for more than SECONDS, of which a warning tells. `yes-no`: no
    text holds it, since the word yes in a text says nothing.
    """
    return bool(_MATCHER.matches(answers, [text], kind)[0])


def answer_spans(answers: Sequence[str], text: str, kind: str = "string", *, question: str = "") -> list[Span]:
    """Return the spans of all matches of the answers in `text`, in order, overlapping ones merged.

    Offsets count characters of `text` itself, not of its NFD form; a character that a match covers in part belongs to
    the span. Empty matches, matches of white space and answers without tokens have no span.
    """
    if _checked(kind) == "yes-no":
        return []
    nfd_text = nfd(text)
    is_regex = kind == "regex"
    places = pattern_matches(answers, nfd_text, question=question) if is_regex else _token_matches(answers, nfd_text)
    spans = [Span(start, end) for start, end in places if nfd_text[start:end].strip()]
    if spans and not unicodedata.is_normalized("NFD", text):
        origins = _origins(text)
        spans = [Span(min(origins[start:end]), max(origins[start:end]) + 1) for start, end in spans]
    return merge(spans, touching=False)


class AnswerMatcher:
    """`has_answer` for many questions and the passages of their rankings, many times faster than pair by pair.

    Answers and the last `size` passages stay tokenised, a passage only if an answer's longest token occurs in it.
    Tokens hold no spaces, so a sub-list of tokens is a substring of the tokens joined and enclosed by spaces.
    """

    def __init__(self, *, size: int = CACHED) -> None:
        self._padded = lru_cache(maxsize=size)(padded)
        self._folded = lru_cache(maxsize=size)(_folded)
        self._nfd = lru_cache(maxsize=size)(nfd)

    def matches(self, answers: Sequence[str], texts: Sequence[str], kind: str = "string", question: str = "") -> Array:
        """Return bools of shape (len(texts),): `has_answer(answers, text, kind)` of each text."""
        if kind == "regex":
            matched = [any(pattern_matches(answers, self._nfd(text), question=question)) for text in texts]
        else:
            prepared = [] if _checked(kind) == "yes-no" else list(map(_prepare, answers))
            matched = [self._holds(text, prepared) for text in texts]
        return np.array(matched, dtype=bool)

    def table(self, questions: Sequence[tuple[Sequence[str], str]], texts: Sequence[str]) -> Array:
        """Return bools of shape (questions, texts): `matches` of each question, with a pass a text for all strings."""
        table = np.zeros((len(questions), len(texts)), dtype=bool)
        needles_by_token: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for row, (answers, kind) in enumerate(questions):
            if kind == "regex":
                table[row] = self.matches(answers, texts, kind)
                continue
            for needle in needles(answers, kind):
                needles_by_token[max(needle.split(), key=len, default="")].append((needle, row))
        for column, text in enumerate(map(self._padded, texts)):
            for token in needles_by_token.keys() & ["", *text.split()]:
                for needle, row in needles_by_token[token]:
                    table[row, column] |= needle in text
        return table

    def _holds(self, text: str, needles: list[tuple[str, str]]) -> bool:
        folded = self._folded(text)
        return any(longest in folded and needle in self._padded(text) for longest, needle in needles)


def _checked(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"answer_kind is {kind!r}, expected one of {', '.join(KINDS)}")
    return kind


def needles(answers: Sequence[str], kind: str) -> list[str]:
    """Prepare answers for the search in `padded` texts: needles of strings, patterns as they are, none for yes-no."""
    if _checked(kind) == "yes-no":
        return []
    return list(dict.fromkeys(answers if kind == "regex" else (_prepare(answer)[1] for answer in answers)))


def padded(text: str) -> str:
    """Join the tokens by spaces, with one at either end; it contains the needle of every string that the text holds."""
    return f" {' '.join(tokens(text))} "


@lru_cache(maxsize=CACHED)
def _prepare(answer: str) -> tuple[str, str]:
    """Return the longest token, as `_folded` has it, and the needle; both are empty for an answer without tokens."""
    words = tokens(answer)
    return max(words, key=len, default="").replace("ς", "σ"), padded(answer) if words else ""


def _folded(text: str) -> str:
    """Lower-case without final sigmas, which depend on how the text is split into tokens."""
    return nfd(text).lower().replace("ς", "σ")


@lru_cache(maxsize=CACHED)
def compiled(pattern: str) -> regex.Pattern | None:
    """Compile a pattern in its NFD form; None if it is invalid."""
    try:
        return regex.compile(nfd(pattern), FLAGS)
    except (regex.error, ValueError, RecursionError):  # raised for clashing flags and deep nesting
        return None


def _token_matches(answers: Sequence[str], nfd_text: str) -> Iterator[tuple[int, int]]:
    places = [match.span() for match in _TOKEN.finditer(nfd_text)]
    words = [nfd_text[start:end].lower() for start, end in places]
    for answer_words in filter(None, map(tokens, answers)):
        for i in range(len(words) - len(answer_words) + 1):
            if words[i : i + len(answer_words)] == answer_words:
                yield places[i][0], places[i + len(answer_words) - 1][1]


def pattern_matches(answers: Sequence[str], nfd_text: str, *, fullmatch: bool = False, question: str = "") -> Places:
    """Yield the places of the patterns' matches, or by `fullmatch` of whole texts; a warning names the `question`."""
    for pattern in filter(None, map(compiled, answers)):
        places = _search(pattern, nfd_text, fullmatch)
        if places is None:
            question_part = f" of question {question[:80]!r}" if question else ""
            reason = f"takes more than {SECONDS} s in a text, which counts as one without it; mend the pattern"
            warnings.warn(f"answer {pattern.pattern!r}{question_part} {reason}", stacklevel=2)
        yield from places or ()


@lru_cache(maxsize=256)  # a text that takes too long is searched once, not again for each thing that is made of it
def _search(pattern: regex.Pattern, nfd_text: str, fullmatch: bool) -> list[tuple[int, int]] | None:
    """Return the places of all matches, None where the search takes too long."""
    try:
        matches = (pattern.fullmatch if fullmatch else pattern.finditer)(nfd_text, timeout=SECONDS)
        return [match.span() for match in ([matches] if fullmatch else matches) if match]
    except TimeoutError:
        return None


def _origins(text: str) -> list[int]:
    """Return, for each character of the NFD form, the index of its character in `text`."""
    pairs = [(i, part) for i, character in enumerate(text) for part in unicodedata.normalize("NFD", character)]
    classes = [unicodedata.combining(part) for _, part in pairs]
    starters = accumulate(not canonical_class for canonical_class in classes)
    # NFD sorts each run of combining marks by their class, stably.
    return [i for _, _, i in sorted(zip(starters, classes, (i for i, _ in pairs), strict=True))]


def merge(spans: Iterable[Span], *, touching: bool = True) -> list[Span]:
    """Sort spans and join those that overlap or, if `touching`, touch."""
    merged: list[Span] = []
    for start, end in sorted((s.start, s.end) for s in spans):
        if merged and start < merged[-1].end + touching:
            merged[-1] = Span(merged[-1].start, max(end, merged[-1].end))
        else:
            merged.append(Span(start, end))
    return merged


_MATCHER = AnswerMatcher(size=1)  # of has_answer
