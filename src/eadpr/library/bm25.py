"""BM25 as a scorer, to compare models with."""

import math
from collections import Counter
from collections.abc import Iterable

from eadpr.library.scorers import Score
from eadpr.text import answers

K1, B = 0.9, 0.4  # Pyserini's


def bm25(corpus: Iterable[str]) -> Score:
    """Return a scorer by BM25 with the texts' statistics; words are DPR's tokens in lower case, without stemming."""
    documents = [Counter(_terms(text)) for text in corpus]
    if not documents:
        raise ValueError("BM25 needs texts to count words in")
    average = sum(counts.total() for counts in documents) / len(documents)
    frequency = Counter(term for counts in documents for term in counts)
    idf = {term: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for term, n in frequency.items()}
    unseen = math.log(1 + (len(documents) + 0.5) / 0.5)

    def score(question: str, title: str, text: str) -> float:
        counts = Counter(_terms(f"{title} {text}"))
        norm = K1 * (1 - B + B * counts.total() / average)
        return sum(
            idf.get(term, unseen) * counts[term] / (counts[term] + norm) for term in _terms(question) if counts[term]
        )

    return lambda questions, titles, texts: [score(*row) for row in zip(questions, titles, texts, strict=True)]


def _terms(text: str) -> list[str]:
    return [token.lower() for token in answers.tokens(text)]
