"""Texts sampled from a sequence-to-sequence model, by name or folder."""

import torch
from transformers import LogitsProcessor, LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper

from eadpr.runtime import cache, machine, model_folders
from eadpr.runtime.machine import Machine
from eadpr.runtime.model_folders import ModelFiles
from eadpr.supervision import qa_model
from eadpr.writers.choose import Candidate, Generate, Original, draw
from eadpr.writers.config import Seq2Seq, filled
from eadpr.writers.kept import kept


class _OnCpu(LogitsProcessor):
    """CUDA has no cumulative sum that torch's deterministic mode (`machine.deterministic`) allows; top-p takes one."""

    def __init__(self, inner: LogitsProcessor) -> None:
        self.inner = inner

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids.cpu(), scores.cpu()).to(scores.device)


def seq2seq(settings: Seq2Seq, seed: int, *, hardware: Machine, files: ModelFiles) -> Generate:
    """`files` are those of a model folder as the stage `configs` saw them. All candidates of a call share a batch.
    A text that did not end within `output_tokens` was cut off."""
    model_folders.check(settings.model, files)
    model, tokenizer = qa_model.load(settings.model, revision=settings.revision, setting="seq2seq.model")
    model = model.to(machine.device())
    sampling = LogitsProcessorList(
        [TemperatureLogitsWarper(settings.temperature), _OnCpu(TopPLogitsWarper(settings.top_p))]
    )

    own = machine.key(__file__, [], settings, files, hardware)

    def generate(original: Original, numbers: range) -> list[Candidate]:
        title = original.positive.title
        if not original.text or not numbers:
            return []
        prompt = filled(settings.prompt, question=original.question.question, title=title, text=original.text)
        asked = [prompt, draw(seed, original.question.id, numbers.start), len(numbers)]
        texts = kept("seq2seq", cache.fingerprint(own, asked), lambda: sampled(*asked))
        return [Candidate(title, text.strip() if whole else None) for text, whole in texts]

    @torch.inference_mode()
    def sampled(prompt: str, drawn: int, count: int) -> list[tuple[str, bool]]:
        asked = tokenizer(prompt, truncation=True, max_length=settings.input_tokens, return_tensors="pt")
        torch.manual_seed(drawn)
        with machine.autocast(hardware):
            made = model.generate(
                input_ids=asked.input_ids.to(model.device),
                attention_mask=asked.attention_mask.to(model.device),
                do_sample=True,
                num_beams=1,
                logits_processor=sampling,
                temperature=1.0,
                top_p=1.0,
                top_k=0,
                max_new_tokens=settings.output_tokens,
                num_return_sequences=count,
            )
        # BART's first token is an end too, and it is made to end its last one.
        ended = (made[:, 1 : settings.output_tokens] == tokenizer.eos_token_id).any(dim=1).tolist()
        return list(zip(tokenizer.batch_decode(made, skip_special_tokens=True), ended, strict=True))

    return generate
