"""Settings of language models and of the stages that use them; no heavy imports."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from eadpr.runtime.section import Section

_FIELD = re.compile(r"\{(\w+)\}")


def fill_prompt(prompt: str, **values: str) -> str:
    """Replace each {name} by its value; other braces stay."""
    return _FIELD.sub(lambda match: values.get(match[1], match[0]), prompt)


def _check_prompt(prompt: str) -> str:
    fields = set(_FIELD.findall(prompt))
    if not {"text"} <= fields <= {"text", "question", "title"}:
        raise ValueError("must hold {text}, and no other fields than {question} and {title}")
    return prompt


URL = r"^https?://[^@\s?#]+$"  # no user:password@, which would be written to config files


class Endpoint(Section):
    """A language model and its prompt. `key_variable` names the variable of the key, never the key; None sends none."""

    url: str = Field(pattern=URL)
    model: str = Field(min_length=1)
    key_variable: str | None = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    temperature: float = Field(ge=0)
    top_p: float = Field(gt=0, le=1)
    max_tokens: int = Field(ge=1)
    prompt: Annotated[str, AfterValidator(_check_prompt)]
