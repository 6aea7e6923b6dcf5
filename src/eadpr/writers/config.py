"""Settings of language models and of the stages that use them; no heavy imports."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from eadpr.corpus.sources import File
from eadpr.runtime.section import Section
from eadpr.supervision.config import WriterKind

_FIELD = re.compile(r"\{(\w+)\}")


def fill_prompt(prompt: str, **values: str) -> str:
    """Replace each {name} by its value; other braces stay."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), prompt)


def _with_fields(required: tuple[str, ...], optional: tuple[str, ...]) -> AfterValidator:
    def check(prompt: str) -> str:
        fields = set(_FIELD.findall(prompt))
        if not set(required) <= fields <= {*required, *optional}:
            must, may = (" and ".join(f"{{{field}}}" for field in names) for names in (required, optional))
            raise ValueError(f"must hold {must}, and no other fields than {may}")
        return prompt

    return AfterValidator(check)


WritingPrompt = Annotated[str, _with_fields(("text",), ("question", "title"))]
EvidencePrompt = Annotated[str, _with_fields(("question", "spans"), ("answer", "title"))]


URL = r"^https?://[^@\s?#]+$"  # no user:password@, which would be written to config files


class Server(Section):
    """`key_variable` names the environment variable of the key, never the key; None sends none."""

    url: str = Field(pattern=URL)
    model: str = Field(min_length=1)
    key_variable: str | None = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    top_p: float = Field(gt=0, le=1)
    max_tokens: int = Field(ge=1)


class ToWrite(Section):
    prompt: WritingPrompt
    temperature: float = Field(ge=0)


class ToFindEvidence(Section):
    prompt: EvidencePrompt
    temperature: float = Field(ge=0)


class Endpoint(Server):
    writing: ToWrite
    evidence: ToFindEvidence


class EndpointTask(Server):
    """A server and the prompt of one task, which the stage `configs` takes from `Endpoint`."""

    prompt: str
    temperature: float = Field(ge=0)


class Writer(Section):
    """The generator of a stage's texts, which the stage `configs` makes from the sections.

    `settings` are those of `endpoint`, `texts` the collection's files for `given`.
    """

    by: WriterKind
    settings: EndpointTask | None
    texts: list[File]
