"""One random change of a file: of its bytes, of its lines, or of a value, field or column of its format."""

import gzip
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from benchmarks.faults import seeds

LONG = 100_000  # characters, or brackets within each other
DIGITS = "9" * 5000
# Values as JSON has them, or as cells and YAML may.
NUMBERS = (
    "NaN", "Infinity", "-Infinity", "1e308", "1e999", str(2**70), "-1", "-0.0", "1.5", "0", "07", "1e-400", DIGITS,
)  # fmt: skip
JSON = (
    *NUMBERS, "true", "null", "[]", "{}", "[[]]", '{"a": 1}', '""', '" "', '"\\t\\n"', '"x"', '"a b"', '"\\u0000"',
    '"\\ud800"', '"\\udc00\\ud800"', '"\\u001b[31m\\u0007"', '"\\u2028"', '"\\ufeff"', '"\\u202e"',
    '"e\\u0301\\u0301"', f'"{"x" * LONG}"', "[" * LONG + "]" * LONG, '{"a":' * LONG + "1" + "}" * LONG, '"[\'x\']"',
    '"<b>&amp;"', '"$(id);`id`"', '"../../x"',
)  # fmt: skip
CELLS = (
    *NUMBERS, "", " ", "x", "a b", "\0", "\x1b[31m", "\u2028", "\ufeff", "'", '"', '"x', '"a""b"', '"a\nb"', '"a\tb"',
    "[", "['x']", '"[""x"", ""y""]"', "[1]", "[None]", "()", "['x'] * 10**9", "__import__('os')", "(" * 300,
    "-" * LONG, "x" * LONG, "$(id)", "=1+1",
)  # fmt: skip
YAML = (
    *NUMBERS, ".nan", ".inf", "-.inf", "true", "yes", "", "~", "''", "x", "[]", "{}", "[[1]]", "{a: 1}", "[", "}", "'",
    '"\\q"', '"\\ud800"', "2020-13-45", "2020-01-01", "!!python/object/apply:os.system [id]", "!!binary x", "!x y",
    "&a [*a, *a]", "*a", "<<: {a: 1}", "|", "a: b", "0o17", "0x1F", "1_000", "1:30", "%x", "@x", "`id`", "\0", "\x1b",
    "\u2028", "[" * 2000 + "]" * 2000, "{a: " * 500 + "}" * 500, f"[{', '.join(['[x, x]'] * 2000)}]", "x" * LONG,
    "../../x", "$(id)", "-" * 300,
)  # fmt: skip
BYTES = (
    b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85",
    b"\x1b", b"\x07", b"\r", b"\n", b"\r\n", b"\t", b'"', b"'", b"\\", b"[", b"]", b"{", b"}", b",", b":", b"#", b"- ",
    b"  ", b"&a ", b"*a ", b"<b>", b"\n---\n",
)  # fmt: skip
OTHERS = (1, 2**62, float("nan"), True, b"\xff", {"a": 1}, [1], ["x", None], datetime(2020, 1, 1))  # in a column

Change = tuple[str, bytes]  # in words, and the file after it


def changed(rng: random.Random, name: str, data: bytes) -> Change:
    """The file with one thing changed; packed ones are changed within, or as they are packed."""
    of_format = next((change for pattern, change in BY_NAME if re.search(pattern, name)), of_bytes)
    try:
        return rng.choice((of_format, of_format, of_bytes))(rng, name, data)
    except Exception:  # a file that was changed already may be none of its format
        return of_bytes(rng, name, data)


def of_bytes(rng: random.Random, _name: str, data: bytes) -> Change:
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 1, 4, 30, 400)))
    kind = rng.choice(("flip", "flip", "flip", "cut", "drop", "double", "insert", "insert", "insert", "nest", "whole"))
    if kind == "flip" and start < len(data):
        flipped = data[start] ^ (1 << rng.randrange(8))
        return f"byte {start} is {flipped}", data[:start] + bytes([flipped]) + data[start + 1 :]
    if kind == "cut":
        return f"cut at {start}", data[:start]
    if kind == "drop":
        return f"{start}:{end} dropped", data[:start] + data[end:]
    if kind == "double":
        return f"{start}:{end} doubled", data[:end] + data[start:]
    if kind == "nest":
        return f"opened at {start} without end", data[:start] + rng.choice((b"[", b'{"a":', b"(")) * LONG + data[start:]
    if kind == "whole":
        return rng.choice(tuple(_wholes(data).items()))
    token = rng.choice(BYTES)
    return f"{token!r} put in at {start}", data[:start] + token + data[start:]


def _wholes(data: bytes) -> dict[str, bytes]:
    ends = {"CRLF": b"\r\n", "CR": b"\r"}
    variants = {name: data.replace(b"\n", end) for name, end in ends.items()}
    variants |= {"empty": b"", "blank": b" \n\n", "twice": data * 2, "zeros": bytes(len(data))}
    variants |= {"BOM": b"\xef\xbb\xbf" + data, "UTF-16": data.decode("latin-1").encode("utf-16")}
    variants |= {"no last newline": data.rstrip(b"\n"), "called gzip": gzip.compress(data, mtime=0)}
    return variants | {"lines turned round": b"".join(reversed(data.splitlines(keepends=True)))}


def of_lines(rng: random.Random, name: str, data: bytes) -> Change:
    """Rows dropped, doubled, moved, cut."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return of_bytes(rng, name, data)
    i = rng.randrange(len(lines))
    kind = rng.choice(("drop", "double", "cut", "first"))
    edited = {
        "drop": lines[:i] + lines[i + 1 :],
        "double": lines[: i + 1] + lines[i:],
        "cut": [*lines[:i], lines[i][: rng.randrange(len(lines[i]) + 1)], *lines[i + 1 :]],
        "first": [lines[i], *lines[:i], *lines[i + 1 :]],
    }[kind]
    return f"line {i + 1}: {kind}", b"".join(edited)


def of_json(rng: random.Random, name: str, data: bytes) -> Change:
    """A value, field or item of JSON lines, a list or an object."""
    if rng.random() < 0.1:
        return of_lines(rng, name, data)
    per_line = not data.lstrip().startswith(b"[") and b"\n{" in data
    value = [json.loads(line) for line in data.splitlines() if line] if per_line else json.loads(data)
    description, token = of_value(rng, value, JSON)
    ascii_only = rng.random() < 0.5
    lines = [json.dumps(item, ensure_ascii=ascii_only) for item in (value if per_line else [value])]
    return description, "\n".join(lines).replace(json.dumps(MARK), token).encode("utf-8") + b"\n"


MARK = "put a token here"


def of_value(rng: random.Random, value: Any, tokens: tuple[str, ...]) -> tuple[str, str]:
    """Change something within `value`, MARK where a token is to stand; what was done, and the token."""
    places = list(_places(value, "")) or [([value], 0, "all")]
    holder, key, path = rng.choice(places)
    kind = rng.choice(("replace",) * 6 + ("drop", "rename", "double", "wrap"))
    token = rng.choice(tokens)
    if kind == "drop":
        del holder[key]
    elif kind == "rename" and isinstance(holder, dict):
        items = list(holder.items())
        new = rng.choice((f"{key}x", key.upper(), "id", "text", "a\x1b[31m", f" {key}"))
        holder.clear()
        holder.update((new if name == key else name, inner) for name, inner in items)
        return f"{path} is called {new!r}", token
    elif kind == "double" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif kind == "wrap":
        holder[key] = rng.choice(([holder[key]], {"a": holder[key]}, str(holder[key])))
    else:
        holder[key] = MARK
        return f"{path} is {token[:40]}", token
    return f"{path}: {kind}", token


def _places(value: Any, path: str):
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(inner):
        yield value, key, f"{path}.{key}"
        yield from _places(child, f"{path}.{key}")


def of_table(rng: random.Random, name: str, data: bytes) -> Change:
    """A cell or a column of separated values, without regard to quotes."""
    if rng.random() < 0.2:
        return of_lines(rng, name, data)
    tab = "\t" if ".csv" not in name or "qa.csv" in name else ","
    rows = [line.split(tab) for line in data.decode("utf-8").split("\n")]
    i = rng.randrange(max(1, len(rows) - 1))
    j = rng.randrange(len(rows[i]))
    kind = rng.choice(("replace",) * 5 + ("drop", "more", "column", "header"))
    token = rng.choice(CELLS)
    if kind == "replace":
        rows[i][j] = token
    elif kind == "drop":
        del rows[i][j]
    elif kind == "more":
        rows[i].insert(j, token)
    elif kind == "header":
        i, j = 0, rng.randrange(len(rows[0]))
        rows[0][j] = rng.choice((token, f"{rows[0][j]}x", rows[0][j].upper(), rows[0][0], f" {rows[0][j]}"))
    else:
        rows = [row[:j] + row[j + 1 :] for row in rows]
    return f"row {i + 1}, cell {j + 1}: {kind}, {token[:40]!r}", "\n".join(map(tab.join, rows)).encode()


def of_yaml(rng: random.Random, name: str, data: bytes) -> Change:
    """The value or the key of a line, or a value within brackets; lines dropped, doubled, moved in and out."""
    lines = data.decode().split("\n")
    i = rng.choice([i for i, line in enumerate(lines) if re.search(r"[\w\]}]", line.split("#")[0])])
    line, token = lines[i], rng.choice(YAML)
    kind = rng.choice(("value",) * 4 + ("inner",) * 3 + ("key", "drop", "double", "in", "out", "more"))
    inner = list(re.finditer(r"(?<=[:,\[] )[^,\[\]{}#]+?(?= *[,\]}#]|$)", line))
    if kind == "inner" and inner:
        place = rng.choice(inner)
        line = f"{line[: place.start()]}{token}{line[place.end() :]}"
    elif kind in ("value", "inner"):
        line = re.sub(r"^( *(?:- )?[\w-]+:)?.*", lambda match: f"{match[1] or ''} {token}", line)
    elif kind == "key":
        line = re.sub(
            r"[\w-]+", lambda match: rng.choice((f"{match[0]}x", "null", "1", ".nan", "[a]", "'a\\x1b'")), line, count=1
        )
    elif kind in ("in", "out"):
        line = f"  {line}" if kind == "in" else line.removeprefix("  ")
    edited = {"drop": [], "double": [line, line], "more": [line, token]}.get(kind, [line])
    return f"line {i + 1}: {kind}, {token[:40]!r}", "\n".join([*lines[:i], *edited, *lines[i + 1 :]]).encode()


def of_parquet(rng: random.Random, name: str, data: bytes) -> Change:
    """Another value, name or type of a column."""
    description, column = _column(rng, pq.read_table(io.BytesIO(data)).to_pylist())
    how = {"compression": rng.choice(("none", "snappy", "gzip", "zstd")), "use_dictionary": rng.random() < 0.5}
    out = io.BytesIO()
    pq.write_table(pa.table(column), out, **how, row_group_size=rng.choice((1, 1000)))
    return f"{description}, {how}", out.getvalue()


def _column(rng: random.Random, rows: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    name = rng.choice(list(columns))
    kind = rng.choice(("name", "drop", "value", "value", "type", "type", "rows"))
    if kind == "name":
        new = rng.choice((f"{name}x", name.upper(), "id", "text", "\x1b", "content"))
        return f"{name} is called {new!r}", {new if key == name else key: values for key, values in columns.items()}
    if kind == "drop":
        del columns[name]
    elif kind == "rows":
        rows_slice = rng.choice((slice(0, 0), slice(0, 1), slice(None, None, -1)))
        columns = {key: values[rows_slice] for key, values in columns.items()}
    elif kind == "value" and isinstance(columns[name][0], str):
        texts = (None, "", " ", "\0", "a b", "\u2028", "x" * LONG, "\x1b", "['x']")
        columns[name][rng.randrange(len(rows))] = rng.choice(texts)
    else:
        count = len(rows)
        numbers = [str(i) for i in range(count)]
        arrays = [pa.array([value] * count) for value in OTHERS]
        arrays += [pa.array(numbers, pa.large_string()), pa.array(numbers).dictionary_encode(), pa.nulls(count)]
        columns[name] = rng.choice([*arrays, pa.array([[]] * count, pa.list_(pa.string()))])
        return f"{name} is of {columns[name].type}", columns
    return f"{name}: {kind}", columns


def _packed(unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes], inner: str) -> Callable[..., Change]:
    def change(rng: random.Random, name: str, data: bytes) -> Change:
        description, edited = changed(rng, re.sub(r"\.\w+$", inner, name), unpack(data))
        return f"within, {description}", pack(edited)

    return change


def of_zip(rng: random.Random, name: str, data: bytes) -> Change:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {member: archive.read(member) for member in archive.namelist()}
    chosen = rng.choice(list(parts))
    description, edited = changed(rng, chosen, parts[chosen])
    return f"{chosen}, {description}", seeds.zipped(parts | {chosen: edited})


BY_NAME: tuple[tuple[str, Callable[..., Change]], ...] = (
    (r"\.gz$", _packed(gzip.decompress, seeds.zipped_twice, "")),
    (r"\.tar\.bz2$", _packed(seeds.untarred, seeds.tarred, ".jsonl")),
    (r"\.zip$", of_zip),
    (r"\.jsonl?$", of_json),
    (r"\.parquet$", of_parquet),
    (r"\.yaml$", of_yaml),
    (r"\.(tsv|csv|qrels)$", of_table),
    (r"\.(txt|md)$", of_lines),
)  # fmt: skip
