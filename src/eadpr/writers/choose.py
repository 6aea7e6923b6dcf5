"""The generator that the settings name: a language model of one kind or the other, or the collection's own files."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eadpr.writers.config import EndpointTask, Writer, fill_prompt
from eadpr.writers.original import Candidate, Generate, Original, candidate_seed


def make_generator(settings: Writer, seed: int, *, sources: Path, raw: Path) -> Generate:
    """Return the generator; only the modules that it needs are imported.

    `sources` and `raw` are the folders of the collection's files.
    """
    match settings.by:
        case "endpoint":
            return generate_by_endpoint(settings.settings, seed)
        case "seq2seq":
            from eadpr.writers.seq2seq import generate_by_seq2seq

            return generate_by_seq2seq(settings.settings, seed, hardware=settings.machine, files=settings.model_files)
        case "given":
            from eadpr.writers.given import generate_from_files

            files = [(file, file.local(sources=sources, raw=raw)) for file in settings.texts]
            return generate_from_files(settings.settings, files)


def generate_by_endpoint(settings: EndpointTask, seed: int) -> Generate:
    """Return a generator that sends one request per candidate."""
    from eadpr.writers.endpoint import AT_ONCE, complete

    def generate(original: Original, numbers: range) -> list[Candidate]:
        title = original.positive.title
        if not original.text:
            return []
        prompt = fill_prompt(settings.prompt, question=original.question.question, title=title, text=original.text)
        messages = [{"role": "user", "content": prompt}]
        # 31 bits are what servers accept.
        seeds = [candidate_seed(seed, original.question.id, number) % 2**31 for number in numbers]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            completions = list(pool.map(lambda number: complete(settings, messages, seed=number), seeds))
        return [Candidate(title, answer.text if answer.finished else None) for answer in completions]

    return generate
