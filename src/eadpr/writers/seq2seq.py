"""Texts sampled from a sequence-to-sequence model, by name or folder."""

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor, LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from eadpr.runtime import cache, machine, model_folders
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import ModelFiles
from eadpr.supervision import qa_model
from eadpr.writers.answer_cache import cached_answer
from eadpr.writers.config import Seq2Seq
from eadpr.writers.original import WriteTexts


class _OnCpu(LogitsProcessor):
    """Top-p's cumulative sum on the CPU: CUDA has none that torch's deterministic mode allows."""

    def __init__(self, inner: LogitsProcessor) -> None:
        self.inner = inner

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids.cpu(), scores.cpu()).to(scores.device)


def make_sampler(settings: Seq2Seq, *, hardware: Machine, files: ModelFiles) -> WriteTexts:
    """Return a function that samples the texts of one call in one batch, with the first seed.

    `files` are the model folder's files as the stage `configs` read them. A text that does not end within
    `output_tokens` counts as cut off.
    """
    model_folders.check(settings.model, files)
    model, tokenizer = qa_model.load(settings.model, revision=settings.revision, setting="seq2seq.model")
    model = model.to(machine.device())
    warpers = LogitsProcessorList(
        [TemperatureLogitsWarper(settings.temperature), _OnCpu(TopPLogitsWarper(settings.top_p))]
    )
    model_key = machine.key(__file__, [], settings, files, hardware)

    def write(prompt: str, seeds: Sequence[int]) -> list[str | None]:
        arguments = [prompt, seeds[0], len(seeds)]
        texts = cached_answer("seq2seq", cache.fingerprint(model_key, arguments), lambda: sample(*arguments))
        return [text.strip() if finished else None for text, finished in texts]

    @torch.inference_mode()
    def sample(prompt: str, sampling_seed: int, count: int) -> list[tuple[str, bool]]:
        """Return `count` texts, each with whether it ended."""
        inputs = tokenizer(prompt, truncation=True, max_length=settings.input_tokens, return_tensors="pt")
        torch.manual_seed(sampling_seed)
        with machine.autocast(hardware):
            outputs = model.generate(
                input_ids=inputs.input_ids.to(model.device),
                attention_mask=inputs.attention_mask.to(model.device),
                do_sample=True,
                num_beams=1,
                logits_processor=warpers,
                temperature=1.0,
                top_p=1.0,
                top_k=0,
                max_new_tokens=settings.output_tokens,
                num_return_sequences=count,
            )
        # BART's first token is an end token too, and at the maximum length it is forced to end.
        finished = (outputs[:, 1 : settings.output_tokens] == tokenizer.eos_token_id).any(dim=1).tolist()
        return list(zip(tokenizer.batch_decode(outputs, skip_special_tokens=True), finished, strict=True))

    return write
