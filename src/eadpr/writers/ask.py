"""Questions about passages, each about one sentence, which is its evidence (PAQ's way; 002, section 5.1).

A sequence-to-sequence model writes them, or a language model, or each is the sentence itself. Dropped, and counted:
`cut_off`, where the writer did not read all of the prompt or did not end; `empty`, without letter or digit; `repeated`,
another passage's question or an earlier one of its own; `not_found`, whose passage BM25 does not rank among the first.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from eadpr.corpus.formats import own
from eadpr.corpus.formats.columns import Columns
from eadpr.corpus.formats.documents import convert_documents
from eadpr.corpus.formats.hugging_face import as_file
from eadpr.corpus.pieces import cut_passages
from eadpr.corpus.rows import check_passages, digest
from eadpr.runtime import files, machine
from eadpr.runtime.progress import progress
from eadpr.storage import tables
from eadpr.storage.records import Passage, Span
from eadpr.supervision import bm25, qa_model
from eadpr.text.answers import tokens
from eadpr.text.spans import segment
from eadpr.training.padding import TOKENS, batches, pad
from eadpr.writers.config import fill_prompt
from eadpr.writers.original import squash_spaces

WORDS = 5  # a shorter sentence is not asked about
BLOCK = 32  # prompts handed to a writer at a time; a CPU may take minutes for them, without a line of progress
INPUT_TOKENS, OUTPUT_TOKENS, BEAMS = 512, 64, 4  # of a sequence-to-sequence model
# Of models that generate questions on SQuAD, which read the passage with marks around what they ask about.
SEQ2SEQ_PROMPT = "generate question: {marked}"
# Half a billion parameters can follow it. Servers keep what comes first, the passage, for its next sentence.
ENDPOINT_PROMPT = """Passage: {title}. {text}

Sentence: {sentence}

Write one short question that this sentence answers. Use names, not pronouns. Reply with the question only."""

# A question in what models write around it: their thoughts, a label, quotation marks.
WRITTEN = re.compile(r'(?is)\A\s*(?:<think>.*?</think>)?\s*(?:question:)?\s*(?:"([^"]*)"\s*\Z|(.*)\Z)')
Write = Callable[[Sequence[str]], Sequence[str | None]]  # prompts -> what was written for each, None if cut off
Task = tuple[Passage, Span]  # a sentence to ask about


def read_passages(source: Path, columns: Mapping[str, str], split_words: int | None) -> list[Passage]:
    """Read a folder of documents, or a file of passages, as `eadpr add` does. Raises ValueError for an id of two."""
    with TemporaryDirectory() as scratch:
        if source.is_dir():
            path, unread = convert_documents(source, Path(scratch))
            if unread:
                print(f"{source}: not read: {unread}", file=sys.stderr, flush=True)
        else:
            path = as_file(source, Path(scratch))
        rows = check_passages(own.read_passages(path, Columns("passages", columns)))
        passages = [Passage(*row[1:4], None) for row in (cut_passages(rows, split_words) if split_words else rows)]
    for passage_id, count in Counter(passage.id for passage in passages).most_common(1):
        if count > 1:
            raise ValueError(f"{source}: {count} passages have the id {passage_id!r}; give each its own")
    return passages


def choose_sentences(passage: Passage, count: int, seed: int) -> list[Span]:
    """Draw at most `count` sentences of WORDS or more; none of a passage of one, which would be all evidence."""
    sentences = segment(passage)
    long = [span for span in sentences if len(tokens(passage.text[slice(*span)])) >= WORDS and len(sentences) > 1]
    return sorted(sorted(long, key=lambda span: digest(str(seed), passage.id, str(span.start)))[:count])


def make_prompt(form: str, task: Task) -> str:
    (_, title, text, _), (start, end) = task
    marked = f"{text[:start]}<hl> {text[start:end]} <hl>{text[end:]}"
    return fill_prompt(form, title=title, text=text, sentence=text[start:end], marked=marked)


def write_by_seq2seq(name: str) -> Write:
    """Return a writer by a model's folder or hub name, with beam search; it writes None for a longer prompt."""
    model, tokenizer = qa_model.load(name, setting="--model")
    model.to(machine.device())

    @torch.inference_mode()
    def write(prompts: Sequence[str]) -> list[str | None]:
        ids = tokenizer(list(prompts), truncation=True, max_length=INPUT_TOKENS + 1).input_ids
        texts: list[str | None] = [None] * len(ids)
        for batch in batches([len(row) for row in ids], TOKENS[machine.device()]):
            inputs, mask = (part.to(model.device) for part in pad([ids[i] for i in batch], tokenizer.pad_token_id))
            options = {"num_beams": BEAMS, "do_sample": False, "max_new_tokens": OUTPUT_TOKENS}
            written = model.generate(input_ids=inputs, attention_mask=mask, **options)
            for i, row in zip(batch.tolist(), written, strict=True):
                # T5 begins with its padding. Of a longer prompt the sentence may lie behind the cut.
                if tokenizer.eos_token_id in row[1:] and len(ids[i]) <= INPUT_TOKENS:
                    texts[i] = tokenizer.decode(row, skip_special_tokens=True)
        return texts

    return write


def ask_passages(
    passages: Sequence[Passage], write: Write, form: str, out: Path, *,
    sample: int | None, per_passage: int, within: int, seed: int,
) -> Counter[str]:  # fmt: skip
    """Write the passages, and questions about `sample` of them, to the new folder `out`, for `eadpr add`; return how
    many questions were asked and kept, and the reasons of the others."""
    if out.exists():
        raise ValueError(f"{out} is there already; name a new folder")
    if "{sentence}" not in form and "{marked}" not in form:
        raise ValueError(f"--prompt is {form!r}; it must hold {{sentence}} or {{marked}}, what the question is about")
    sampled = {*sorted((p.id for p in passages), key=lambda passage_id: digest(str(seed), passage_id))[:sample]}
    tasks = [(p, span) for p in passages if p.id in sampled for span in choose_sentences(p, per_passage, seed)]
    if not tasks:
        raise ValueError(f"none of {len(sampled):,} passages has two sentences, one of {WORDS} words at least")
    written: list[str | None] = []
    with progress("ask-passages", len(tasks), "questions") as advance:
        for first in range(0, len(tasks), BLOCK):
            written += write([make_prompt(form, task) for task in tasks[first : first + BLOCK]])
            advance(len(written) - first)
    counts = Counter(asked=len(tasks))
    questions = _collect(tasks, written, counts)
    consistent = _round_trip(passages, questions, within)
    counts |= {"kept": len(consistent), "not_found": len(questions) - len(consistent)}
    if not consistent:
        raise ValueError(f"no question was kept of {dict(counts)}; try --split-words 100, another --prompt or model")
    rows = (
        {"question": question, "positives": [p.id], "evidence": [p.text[start:end]], "answer_start": [start]}
        for question, (p, (start, end)) in consistent.items()
    )
    with files.new_folder(out) as folder:
        own.write_rows(folder / "passages.jsonl", ({"id": p.id, "title": p.title, "text": p.text} for p in passages))
        own.write_rows(folder / "questions.jsonl", rows)
    return counts


def _collect(tasks: Sequence[Task], written: Sequence[str | None], counts: Counter[str]) -> dict[str, Task]:
    """Return each question with the first task that it was written for; count the others by reason."""
    questions: dict[str, Task] = {}
    for task, text in zip(tasks, written, strict=True):
        if text is None:
            counts["cut_off"] += 1
        elif not any(map(str.isalnum, question := squash_spaces(WRITTEN.sub(r"\1\2", text)))):
            counts["empty"] += 1
        elif questions.setdefault(question, task) is not task:
            counts["repeated"] += 1
    return questions


def _round_trip(passages: Sequence[Passage], questions: Mapping[str, Task], within: int) -> dict[str, Task]:
    """Return the questions for which BM25 ranks their passage among the first `within`."""
    settings = bm25.BM25(k1=0.9, b=0.4, depth=within, heap_mb=1024)
    with TemporaryDirectory() as scratch:
        path, folder = Path(scratch) / "passages.parquet", Path(scratch) / "bm25"
        folder.mkdir()
        tables.write(path, Passage, passages)
        rankings = bm25.Searcher(bm25.index(path, folder, bm25=settings), bm25=settings).search(list(questions))
    ranked = zip(questions.items(), rankings, strict=True)
    return {question: task for (question, task), hits in ranked if task[0].id in dict(hits)}
