"""A model's own description: `encoder.json` of our folders, or the files that sentence-transformers writes.

No code and no pickle of a model is run. A module, pooling or similarity that is not computed here is refused by name,
as its vectors would not be what its makers meant. Read are the files of sentence-transformers 6 and of older releases.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from eadpr.runtime.files import read_json
from eadpr.runtime.model_folders import SIDES, is_folder
from eadpr.training.config import SETTINGS, Prompts, ResolvedSettings, settings_of

MODEL = "config_sentence_transformers.json"
WEIGHTS = "model.safetensors"
UNLIMITED = 10**9  # tokens, where only the tokenizer and the positions say how many
# A model without any of these files.
SILENT = ResolvedSettings(pooling="mean", shared=True, question_tokens=256, passage_tokens=256)
# Models that their makers score otherwise than by one vector a text too; PyLate's are ColBERT.
CLASSES = {name: name for name in ("SentenceTransformer", "CrossEncoder", "SparseEncoder", "MultiVectorEncoder")}
CLASSES["ColBERT"] = "MultiVectorEncoder"
ENCODERS = ("Model", "ForMaskedLM", "ForPreTraining", "ForCausalLM")  # ends of architectures' names
QUESTIONS, PASSAGES = ("query", "question"), ("document", "passage", "corpus")  # names of prompts
# Sentence-transformers' names, those of its older releases too, and ours.
POOLINGS = {"cls": "cls", "cls_token": "cls", "mean": "mean", "mean_tokens": "mean", "lasttoken": "last"}


class _Module(BaseModel):
    path: str
    type: str


class DenseShape(BaseModel):
    in_features: int
    out_features: int
    bias: bool = True
    activation_function: Literal["torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"] = (
        "torch.nn.modules.activation.Tanh"
    )
    use_residual: Literal[False] = False
    module_input_name: Literal["sentence_embedding"] = "sentence_embedding"


class _Lengths(BaseModel):
    max_seq_length: int | None = None
    query_length: int | None = None
    document_length: int | None = None
    do_lower_case: bool = False
    query_expansion: None = None  # of models with a vector a token


class _Model(BaseModel):
    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None
    similarity_fn_name: Literal["cosine", "dot"] | None = None
    truncate_dim: None = None
    model_type: Literal["SentenceTransformer"] = "SentenceTransformer"


class Description(NamedTuple):
    """The settings that a model states, and the folders of its Dense modules."""

    settings: ResolvedSettings
    dense: Sequence[Path] = ()


def read_description(name: str, revision: str | None = None, *, setting: str = "the model") -> Description:
    """Return the description in a model folder or hub repository; `revision` is a commit or tag of a hub name.

    Raises ValueError, which begins with `setting` and the name, for files that cannot be followed here.
    """
    files = _Files(name, revision, f"{setting}: {name}")
    path = Path(name).parent / SETTINGS if Path(name).name in SIDES else files.find(SETTINGS)
    saved = settings_of(path.parent) if path and path.is_file() else None
    modules = files.read_modules()
    if modules is None and saved is None:
        kind = read_class(name, revision, setting=setting)
        if kind != "SentenceTransformer":
            raise ValueError(f"{files.label} is a {kind}, which makes no one vector of a text; choose an encoder")
    if modules is None or (saved and modules[-1].type.endswith((".Router", ".MultiVectorMask"))):  # as published
        return Description(saved or SILENT)
    description = _follow(files, modules)
    return description._replace(settings=saved) if saved else description


def read_class(name: str, revision: str | None = None, *, setting: str = "the model") -> str:
    """Return the class of sentence-transformers that scores as a model was made to."""
    files = _Files(name, revision, f"{setting}: {name}")
    modules, stated = files.read_modules(), files.read(MODEL, dict[str, Any]) or {}
    if kind := stated.get("model_type"):
        if kind not in CLASSES:
            raise files.refuse(MODEL, f"model_type {kind} is not known here; known are {', '.join(CLASSES)}")
        return CLASSES[kind]
    if modules is not None:
        return "SentenceTransformer"
    architectures = (files.read("config.json", dict[str, Any]) or {}).get("architectures") or []
    if any(architecture.endswith("ForSequenceClassification") for architecture in architectures):
        return "CrossEncoder"
    for architecture in architectures:
        if not architecture.endswith(ENCODERS):
            raise files.refuse("config.json", f"{architecture} is no encoder of one vector a text, and not known here")
    return "SentenceTransformer"


class _Files(NamedTuple):
    """The files of a model folder, or of a hub repository, downloaded as needed."""

    name: str
    revision: str | None
    label: str

    def find(self, file: str) -> Path | None:
        """Return the path of a file, None if the model has none."""
        if is_folder(self.name):
            path = Path(self.name) / file
            return path if path.is_file() else None
        from huggingface_hub import hf_hub_download, try_to_load_from_cache
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        try:
            return Path(hf_hub_download(self.name, file, revision=self.revision))
        except LocalEntryNotFoundError as error:
            # Known to be missing, or all files were downloaded, or sentence-transformers looked, but not for our file.
            seen = (file, ".gitattributes", *(["modules.json"] if file == SETTINGS else []))
            if any(try_to_load_from_cache(self.name, name, revision=self.revision) for name in seen):
                return None
            raise ValueError(f"{self.label}: no hub says whether it has {file}; connect, or name a folder") from error
        except EntryNotFoundError:
            return None
        except (OSError, ValueError) as error:  # no such repository or revision, or one for members
            raise ValueError(f"{self.label} is no folder, and {file} cannot be had from the hub ({error})") from error

    def need(self, file: str) -> Path:
        if (path := self.find(file)) is None:
            raise self.refuse(file, "is not there; is the folder whole, and are its weights safetensors?")
        return path

    def read(self, file: str, kind: Any) -> Any:
        """Return the checked contents of a JSON file, None if the model has none."""
        path = self.find(file)
        try:
            return path and TypeAdapter(kind).validate_python(read_json(path))
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(map(str, wrong["loc"]))
            raise self.refuse(file, f"{where}: {wrong['msg']} (found {wrong['input']!r})") from error

    def read_modules(self) -> list[_Module] | None:
        """Return the modules in their order; refuses classes from elsewhere, as some releases run their code."""
        modules = self.read("modules.json", list[_Module])
        kinds = [module.type for module in modules or []]
        if any(kind.endswith(".Router") for kind in kinds):
            kinds += (self.read("router_config.json", dict[str, dict[str, Any]]) or {}).get("types", {}).values()
        if foreign := [kind for kind in map(str, kinds) if not kind.startswith("sentence_transformers.")]:
            raise self.refuse("modules.json", f"holds {foreign[0]}, which is no class of sentence-transformers")
        return modules

    def refuse(self, file: str, reason: str) -> ValueError:
        return ValueError(f"{self.label}: {file}: {reason}")


def _follow(files: _Files, modules: list[_Module]) -> Description:
    """Return what the modules state: a Transformer, a Pooling, any Dense and at most one Normalize."""
    kinds = [module.type.rpartition(".")[2] for module in modules]
    dense = modules[2 : 2 + kinds.count("Dense")]
    expected = ["Transformer", "Pooling", *["Dense"] * len(dense), "Normalize"]
    if not modules or modules[0].path or kinds not in (expected, expected[:-1]):
        listed = ", ".join(f"{module.type} in {module.path or '.'}" for module in modules)
        supported = "Transformer in ., Pooling, any Dense and at most one Normalize, in this order"
        raise files.refuse("modules.json", f"holds {listed}; known are {supported}")
    file = f"{modules[1].path}/config.json"
    files.need(file)
    pooling = files.read(file, dict[str, Any])
    if not pooling.get("include_prompt", True):
        raise files.refuse(file, "include_prompt is false, and prompts are always pooled here")
    lengths = files.read("sentence_bert_config.json", _Lengths) or _Lengths()
    longest = lengths.max_seq_length or UNLIMITED
    model = files.read(MODEL, _Model) or _Model()
    cosine = modules[-1].type.endswith(".Normalize")
    stated = {
        "pooling": _choose_pooling(files, file, pooling),
        "similarity": "cosine" if cosine else model.similarity_fn_name or "cosine",
        "prompts": Prompts(question=_choose_prompt(model, QUESTIONS), passage=_choose_prompt(model, PASSAGES)),
        "title": "joined",
        "question_tokens": lengths.query_length or longest,
        "passage_tokens": lengths.document_length or longest,
        "lowercase": lengths.do_lower_case,
    }
    folders = []
    for module in dense:
        folders.append(files.need(f"{module.path}/{WEIGHTS}").parent)
        files.read(f"{module.path}/config.json", DenseShape)
    return Description(SILENT.model_copy(update=stated), folders)


def _choose_pooling(files: _Files, file: str, pooling: dict[str, Any]) -> str:
    """Return the pooling by our name, from the key of today or from those that older releases wrote."""
    prefix = "pooling_mode_"
    older = [key.removeprefix(prefix) for key, value in pooling.items() if value is True and key.startswith(prefix)]
    modes = pooling.get("pooling_mode") or older
    modes = [modes] if isinstance(modes, str) else modes
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise files.refuse(file, f"pools by {' and '.join(map(str, modes))}; known is one of {', '.join(POOLINGS)}")
    return POOLINGS[modes[0]]


def _choose_prompt(model: _Model, names: Iterable[str]) -> str:
    """Return a side's prompt: the first that is not empty, as sentence-transformers adds empty ones by itself, or the
    default one, unless this is of the other side."""
    stated = [model.prompts[name] for name in names if model.prompts.get(name) is not None]
    default = model.default_prompt_name
    if not stated and default not in (*QUESTIONS, *PASSAGES):
        stated = [model.prompts.get(default)]
    return next(filter(None, stated), "")
