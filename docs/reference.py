"""Reference pages, made of params.yaml, the sections' models, the stages, the records and the metrics."""

import importlib
import inspect
import itertools
import json
import pkgutil
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from ruamel.yaml import YAML

import eadpr
from eadpr.__main__ import COMMANDS
from eadpr.evaluation import metrics as measures
from eadpr.evaluation.awareness import AWARENESS, Compared
from eadpr.readers import evaluate as of_readers
from eadpr.readers.predictions import Prediction
from eadpr.robustness.config import NearDuplicate
from eadpr.settings.command import Stage
from eadpr.settings.model import Layout, Settings
from eadpr.settings.user_command import app
from eadpr.settings.yaml import DEFAULTS
from eadpr.storage import records, tables
from eadpr.two_hops import evaluate as of_paths
from eadpr.two_hops.config import RankedPath

ROOT = Path(__file__).resolve().parent.parent
BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"}
ABOVE = "see above"  # a comment that is of several keys
PYTHON = re.compile(r"(?ms)^```python\n.*?^```")
PAGE = re.compile(r"\bdocs/([\w/-]+\.md)")  # named in a comment


class Settled(NamedTuple):
    """A file of settings; `where` tells its keys from those of another file."""

    values: Mapping
    lines: Sequence[str]
    where: str


def committed(path: Path) -> str:
    """Return a file as the last commit has it; as it is where there is no repository, as in an sdist."""
    command = ["git", "show", f"HEAD:./{path.name}"]
    result = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else path.read_text(encoding="utf-8")


def settings(read: Callable[[Path], str] = committed) -> str:
    files = _settled(read)
    parts = [
        "# Settings\n\nEach key with its default at the commit of these pages. `dvc exp run -S loss.tau1=0.5` sets one"
        " that stands in `params.yaml`. All others have their defaults in `src/eadpr/settings/defaults.yaml`;"
        " `dvc exp run -S ++train.adam_eps=1.0e-6` puts one into `params.yaml`. Types are those that the stage"
        " `configs` checks. [Work with collections](../howto/collections.md) says what stands in a collection's own"
        " file."
    ]
    for name in dict.fromkeys(key for file in files for key in file.values):
        parts += _section_parts(name, [file for file in files if name in file.values])
    return PAGE.sub(r"[\1](../\1)", "\n\n".join(parts)) + "\n"


def _settled(read: Callable[[Path], str]) -> list[Settled]:
    texts = [(read(ROOT / "params.yaml"), ", in `params.yaml`"), (read(DEFAULTS), "")]
    return [Settled(YAML().load(text), text.splitlines(), where) for text, where in texts]


def meanings() -> Iterator[tuple[str, str, Any, str]]:
    """Yield section, key, default and what is said of it, as they stand in the files now."""
    for values, lines, _ in _settled(lambda path: path.read_text(encoding="utf-8")):
        for name, value in values.items():
            if isinstance(value, Mapping):
                head = _comment(lines, values.lc.key(name)[0])
                for key, *_, meaning in _keys(value, lines, {}, {}, head):
                    yield name, key, value[key], meaning


def _section_parts(name: str, files: Sequence[Settled]) -> Iterator[str]:
    """Yield the parts of the page on a section, of which `files` have some keys each."""
    schema = (Settings if name in Settings.model_fields else Layout).model_json_schema()
    section = _resolved(schema["properties"][name], schema)
    heads = [_comment(file.lines, file.values.lc.key(name)[0]) for file in files]
    first, *more = [head for head in heads if head] or [""]
    rest = "".join(f". {head[0].upper()}{head[1:]}" for head in more)
    yield f"## {name}\n\n{_marked(first.rstrip('.') + rest if more else first)}".rstrip()
    value = files[-1].values[name]
    if name == "arms":
        comments = {arm: _marked(_comment(files[-1].lines, value.lc.key(arm)[0])) or ABOVE for arm in value}
        yield _table(
            ("arm", "its settings", "what it is"), [(f"`{a}`", f"`{_flow(value[a])}`", comments[a]) for a in value]
        )
    elif name not in Settings.model_fields and (entries := [*section.get("patternProperties", {}).values()]):
        intro = "" if name == "collections" else f"Default: `{_flow(value)}`. "
        rows = [(f"`{key}`", kind) for key, kind in _types(_resolved(entries[0], schema), schema)]
        yield f"{intro}Keys of an entry:\n\n{_table(('key', 'type'), rows)}" if rows else intro
    elif isinstance(value, Mapping):
        for file, head in zip(files, heads, strict=True):  # a heading each, by which search finds it
            for key, kind, default, meaning in _keys(file.values[name], file.lines, section, schema, head):
                default = f", default {default}" if default else ""
                yield f"### {name}.{key}\n\n{_marked(meaning)}\n\n*{kind}{default}{file.where}*"
    else:
        yield f"{_type(section, schema)}; default `{_flow(value)}`."


def _keys(
    value: Mapping, lines: Sequence[str], section: Mapping, schema: Mapping, comment: str, prefix: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Key, type, default and meaning: what stands on its line or right above it, else what `comment` says of it."""
    for key, default in value.items():
        line, column = value.lc.key(key)
        first = not lines[line][:column].strip()
        meaning = _comment(lines, line) if first else _clause_on(key, comment)
        kind = _resolved(section.get("properties", {}).get(key, {}), schema)
        nested = isinstance(default, Mapping) and bool(kind.get("properties"))
        yield f"{prefix}{key}", _type(kind, schema), "" if nested else f"`{_flow(default)}`", meaning or ABOVE
        if nested:
            yield from _keys(default, lines, kind, schema, meaning, f"{prefix}{key}.")


def _types(section: Mapping, schema: Mapping, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, kind in section.get("properties", {}).items():
        kind = _resolved(kind, schema)
        yield f"{prefix}{key}", _type(kind, schema)
        inner = _resolved(kind.get("items", kind), schema)
        if inner.get("properties"):
            yield from _types(inner, schema, f"{prefix}{key}{'[]' if inner is not kind else ''}.")


def _comment(lines: Sequence[str], line: int) -> str:
    """The comments right above a line and on it, which goes on below it, far to the right."""
    comments, above = [lines[line].partition(" # ")[2]], line
    while above > 0 and lines[above - 1].startswith(("#", "  #")):
        above -= 1
        comments.insert(0, lines[above].lstrip().removeprefix("#").strip())
    for below in itertools.takewhile(lambda text: text.startswith(" " * 20 + " "), lines[line + 1 :]):
        comments.append(below.strip().removeprefix("# "))
    return " ".join(comments).strip()


def _clause_on(key: str, comment: str) -> str:
    """Return what a comment on several keys, as in `k1: …; b: …`, says of one."""
    ends = r"(?:[.;] +(?:\w+(?:, \w+)*(?: and \w+)?|A \w+): |[.;]?$)"
    match = re.search(rf"(?<![\w.`{{]){key}: (.+?)(?={ends})", comment)
    return match[1] if match else ""


def _marked(text: str) -> str:
    """A comment as Markdown: but for code, no character of it is a mark."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([|_*\[\]])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


def _resolved(kind: Mapping, schema: Mapping) -> Mapping:
    return schema["$defs"][kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind


def _type(kind: Mapping, schema: Mapping) -> str:
    kind = _resolved(kind, schema)
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(_type(option, schema) for option in kind["anyOf"]))
    if values := kind.get("enum", [kind["const"]] if "const" in kind else None):
        return " or ".join(f"`{value}`" for value in values)
    if kind.get("type") == "array":
        return f"list of {_type(kind.get('items', {}), schema)}"
    if kind.get("type") == "object":
        return "section" if kind.get("properties") else "mapping"
    bounds = ", ".join(template.format(kind[key]) for key, template in BOUNDS.items() if key in kind)
    return f"{kind.get('type', 'any')} {bounds}".rstrip()


def _flow(value: Any) -> str:
    """Write a value as YAML would on a line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return str(value) if isinstance(value, str) else json.dumps(value)


def stages() -> str:
    pipeline = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    parts = [
        "# Stages\n\nEvery stage of `dvc.yaml`, in its order: what it does, the [settings](settings.md) that it reads"
        " and the options of its command, `python -m stages.NAME`. C is data/<collection>; a path can be given as"
        " well as a name. [Stages](../explanation/stages.md) has one table of what stages read and write."
    ]
    for name, stage in pipeline.items():
        stage = stage.get("do", stage)
        module = importlib.import_module(re.search(r"-m (stages[.]\w+)", stage["cmd"])[1])
        head = f"## {name}\n\n{_plain(module)}\n\n`python -m {module.__name__}`"
        if not isinstance(module.main, Stage):
            parts.append(f"{head}, whose options stand under [commands](commands.md#{module.__name__.split('.')[1]}).")
            continue
        sections = ", ".join(_section(section) for section in module.main.sections())
        arguments = [(name.upper(), "a name") for name in module.main.arguments()]
        options = [(f"--{name}", pattern or "a name") for name, pattern in module.main.options().items()]
        options = [
            (f"`{name}`", f"`{pattern}`" if "/" in pattern else pattern) for name, pattern in arguments + options
        ]
        parts += [f"{head} reads {sections}.", _table(("option", "default"), options)]
    return "\n\n".join(parts) + "\n"


def _section(name: str) -> str:
    return f"[`{name}`](settings.md#{name})" if name in Settings.model_fields else f"`{name}`"


def commands() -> str:
    """Return the page of the commands for users, and the targets of the Makefile."""
    targets = re.findall(r"(?m)^([a-z-]+):.*## (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"))
    parts = ["# Commands", _table(("command", "does"), [(f"`make {name}`", purpose) for name, purpose in targets])]
    mains = {name.replace("-", "_"): pkgutil.resolve_name(function) for name, function in COMMANDS.items()}
    mains["configs"] = importlib.import_module("stages.configs").main
    for name, main in sorted(mains.items()):
        command = typer.main.get_command(app(main))
        options = [(_spelled(option), _default(option), getattr(option, "help", "") or "") for option in command.params]
        about = inspect.cleandoc(main.__doc__ or importlib.import_module(main.__module__).__doc__)
        parts += [f"## {name}\n\n{about}", _table(("option", "default", "what it is"), options)]
    return "\n\n".join(parts) + "\n"


def _spelled(option: Any) -> str:
    is_option = option.param_type_name == "option"
    return f"`{' '.join((*option.opts, *option.secondary_opts)) if is_option else option.name.upper()}`"


def _default(option: Any) -> str:
    if option.required or option.default in (None, False, []):
        return "required" if option.required else ""
    values = option.default if isinstance(option.default, list) else [option.default]
    return f"`{' '.join(str(getattr(value, 'value', value)) for value in values)}`"


def _plain(module: Any) -> str:
    """A docstring as Markdown, in which an indented block is code."""
    return inspect.cleandoc(module.__doc__)


def _table_of(record: type) -> str:
    rows = [(f"`{field.name}`", _arrow(field.type), "yes" if field.nullable else "") for field in tables.schema(record)]
    about = inspect.cleandoc(record.__doc__) if "(" not in record.__doc__.splitlines()[0][:40] else ""
    return f"## {record.__name__}\n\n{about}\n\n" + _table(("column", "type", "null"), rows)


def _arrow(kind: Any) -> str:
    return re.sub(r"element: | not null", "", str(kind)).replace("<", " of ").replace(">", "")


def _tables() -> Iterable[type]:
    parts = {records.Span, records.ScoredSpan, records.SupportingFact}  # of a column
    types = [record for record in vars(records).values() if isinstance(record, type) and hasattr(record, "_fields")]
    return [*(record for record in types if record not in parts), RankedPath, NearDuplicate, Prediction]


def tables_page() -> str:
    head = (
        "# Tables\n\nEvery table is a Parquet file, and its columns are the fields of one record. Offsets are in"
        " characters and half open. [Stages](../explanation/stages.md) says in which folders the files are."
    )
    return "\n\n".join([head, *map(_table_of, _tables())]) + "\n"


MEASURES = (
    ("top`k`, id_top`k`", measures.top_k_accuracy), ("mrr`k`, id_mrr`k`", measures.reciprocal_rank),
    ("ndcg`k`", measures.ndcg), ("map`k`", measures.average_precision), ("recall`k`", measures.recall),
    ("all`k`", measures.all_found), ("all`k` of paths", of_paths.path_values),
    ("em_`k`", of_readers.exact_match), ("f1_`k`", of_readers.f1),
    ("em, f1 of readers of paths", of_readers.answer_scores), ("sp_em, sp_f1", of_readers.support_scores),
)  # fmt: skip


def metrics() -> str:
    rows = [(name, " ".join(inspect.cleandoc(func.__doc__).removeprefix("(Q,): ").split())) for name, func in MEASURES]
    aware = [(f"`{name}`", compared.title, _holds(compared)) for name, compared in AWARENESS.items()]
    parts = [
        "# Metrics",
        "\n\n".join(inspect.cleandoc(measures.__doc__).split("\n\n")[1:]),
        "In the formulas Q counts questions: each metric gives one value for each question, and the report their mean.",
        _table(("metric", "value of a question"), rows),
        "## Answer awareness\n\nEach is the share of pairs of a question and its positive for which this holds. p′ is"
        " the positive without the answer, p\\* without the evidence, p° without a placebo. A tie does not count. What"
        " this says, and what it misses: [placebos](../methods.md#placebos-and-controlled-awareness).",
        _table(("metric", "in the report", "holds where"), aware),
    ]
    return "\n\n".join(parts) + "\n"


def library() -> str:
    """The names of `import eadpr`, with their arguments, types and docstrings, below README's example."""
    example = PYTHON.search((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    parts = [
        "# Library\n\n`import eadpr` offers these names, and loads what they need when they are asked for. They and"
        " their arguments stay: what is to go is named in the changelog and warns (`DeprecationWarning`, with what to"
        " use instead) through at least one minor version. All else may change with any version. How to use them:"
        " [awareness](../howto/awareness.md), [training](../howto/sentence-transformers.md), [search]"
        f"(../howto/search.md). MODEL is the folder or the Hub name of an encoder:\n\n{example}"
    ]
    for name in eadpr.__all__:
        member = getattr(eadpr, name)
        entry = f"```python\n{_called(name, member)}\n```\n\n{inspect.cleandoc(member.__doc__)}"
        parts.append(f"## {name}\n\n{entry}\n\nExample: {_example(name)}.")
    return "\n\n".join(parts) + "\n"


HOWTOS = {"awareness": "does my model know evidence?", "sentence-transformers": "train in sentence-transformers"}
USED_BY = {"Pointed": "point", "ScoredSentence": "point", "Terms": "evidence_loss", "Texts": "distractors"}
USED_BY |= {"Awareness": "awareness", "Scorer": "awareness"}


def _example(name: str) -> str:
    """Return a link to code that a test runs: of a how-to, or README's, which stands above."""
    called = f"eadpr.{USED_BY.get(name, name)}("
    for page, title in HOWTOS.items():
        text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
        if any(called in block for block in PYTHON.findall(text)):
            return f"[{title}](../howto/{page}.md)"
    if called in PYTHON.search((ROOT / "README.md").read_text(encoding="utf-8"))[0]:
        return "[above](#library)"
    raise ValueError(f"docs/reference.py: no code of {', '.join(HOWTOS)} or README calls {called}…); write some")


MODULES = re.compile(r"\b(?:\w+\.)+(?=[A-Za-z])")  # before the names of types


def _called(name: str, function: Any) -> str:
    """A signature, with an argument a line where it is long."""
    signature = inspect.signature(function)
    called = MODULES.sub("", f"{name}{signature}")
    if len(called) <= 100:
        return called
    arguments = list(map(str, signature.parameters.values()))
    kinds = [argument.kind for argument in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        arguments.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    result = called[called.rindex(")") :]  # with its arrow
    return MODULES.sub("", "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), result]))


def _holds(compared: Compared) -> str:
    return f"{compared.formula}, {compared.meaning}".replace("*", r"\*")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join("| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |" for row in lines)
