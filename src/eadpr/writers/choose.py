"""The generator that the settings name: a language model of one kind or the other, or the collection's own files."""

from functools import partial
from pathlib import Path

from eadpr.writers.config import Writer, fill_prompt
from eadpr.writers.original import Candidate, Generate, Original, WriteTexts, candidate_seed


def make_generator(settings: Writer, seed: int, *, sources: Path, raw: Path) -> Generate:
    """Return the generator; only the modules that it needs are imported.

    `sources` and `raw` are the folders of the collection's files.
    """
    match settings.by:
        case "endpoint":
            from eadpr.writers.endpoint import write_texts

            return generate_by_model(settings.settings.prompt, seed, partial(write_texts, settings.settings))
        case "seq2seq":
            from eadpr.writers.seq2seq import make_sampler

            write = make_sampler(settings.settings, hardware=settings.machine, files=settings.model_files)
            return generate_by_model(settings.settings.prompt, seed, write)
        case "given":
            from eadpr.writers.given import generate_from_files

            files = [(file, file.local(sources=sources, raw=raw)) for file in settings.texts]
            return generate_from_files(settings.settings, files)


def generate_by_model(prompt: str, seed: int, write: WriteTexts) -> Generate:
    def generate(original: Original, numbers: range) -> list[Candidate]:
        question, title = original.question, original.positive.title
        if not original.text:
            return []
        filled = fill_prompt(prompt, question=question.question, title=title, text=original.text)
        texts = write(filled, [candidate_seed(seed, question.id, number) for number in numbers])
        return [Candidate(title, text) for text in texts]

    return generate
