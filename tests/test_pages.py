"""README and the pages of docs/: their commands are right, their links lead somewhere, their lines can be read."""

import importlib
import itertools
import json
import pkgutil
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer
from dvc.cli.parser import get_main_parser
from jsonschema import Draft202012Validator

from docs import demo, one_batch, paper_tables, reference, schema, study_tables
from docs.__main__ import MADE, check_nav, explained, linked, place, write
from docs.numbers import share
from eadpr.__main__ import COMMANDS
from eadpr.settings.command import Stage
from eadpr.settings.resolve import configs
from eadpr.settings.user_command import app
from eadpr.settings.yaml import COLLECTIONS, completed, read_yaml
from eadpr.studies.overrides import apply_overrides, check_effect
from eadpr.studies.study import expand
from tests import repository
from tests.repository import ROOT

LOGS = ("log.md", "2026-11.md", "2026-12.md")
BY_CODE = ("benchmarks.md", "scale.md", "scale-million.md", *LOGS)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[!s]*/*.md"))]
# Collections of the reader's own, and those that a page itself describes.
OTHER = {"mine": "squad-open", "nq-gold": "squad-open", "ramdocs": "squad-open"}


def commands(page: Path, start: str) -> list[str]:
    """Commands in code, to their ends; lines that end with a backslash go on."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"(?ms)^```\n(.*?)^```", text)
    lines = [line.partition("  #")[0] for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`([^`]+)`", re.sub(r"(?ms)^```.*?^```", "", text))
    spans = [" ".join(span.split()) for span in spans]
    return [code for code in (*lines, *spans) if code.startswith(start) and not re.search(r"\.\.\.|<|…", code)]


def page_commands(start: str) -> list[tuple[str, str]]:
    return [(page.name, command) for page in PAGES if page.name not in BY_CODE for command in commands(page, start)]


@pytest.mark.parametrize(("page", "command"), page_commands("dvc exp run ") + page_commands("-S "))
def test_what_a_page_sets_is_valid(page, command):
    """A model's folder is not there, but nothing else is missing."""
    words = shlex.split(command.removeprefix("dvc exp run "))
    changes = [word for flag, word in itertools.pairwise(words) if flag == "-S"]
    changes = [re.sub(r"^(collection=)(.*)", lambda hit: hit[1] + OTHER.get(hit[2], hit[2]), c) for c in changes]
    changes = [change for change in changes if not change.startswith("base.model=models/")]
    assert not [word for word in words if word.startswith("-") and word not in ("-S", "-n", "--queue", "--temp")]
    values = completed(apply_overrides(changes, read_yaml(ROOT / "params.yaml")), ROOT / COLLECTIONS)
    configs(values)
    check_effect(changes, values)


@pytest.mark.parametrize(("page", "command"), page_commands("python -m stages.") + page_commands("eadpr "))
def test_a_command_of_a_page_has_these_options(page, command):
    module, *words = shlex.split(command)[1 if command.startswith("eadpr ") else 2 :]
    main = importlib.import_module(module).main if "." in module else pkgutil.resolve_name(COMMANDS[module])
    if isinstance(main, Stage):
        main.parser().parse_args(words)
        return
    parser = typer.main.get_command(app(main))
    parser.make_context(module, words, resilient_parsing=False) if words else None
    options = {option for parameter in parser.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if re.match(r"--?[a-zA-Z]", word)} <= options


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_else_a_page_says_to_run_is_there(page):
    """DVC parses its commands; targets of make, modules of benchmarks, files of pip and tests named exist."""
    for command in commands(page, "dvc ") if page.name not in LOGS else []:
        get_main_parser().parse_args(shlex.split(command)[1:])
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?m)(?:`|^)make ([a-z-]+)", text):
        assert re.search(rf"(?m)^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8")), target
    modules = re.findall(r"python -m benchmarks\.(\w+)", text)
    paths = [f"benchmarks/{name}{'/__main__' * (ROOT / 'benchmarks' / name).is_dir()}.py" for name in modules]
    paths += re.findall(r"`(tests/\w+\.py)`", text) + re.findall(r"requirements/\w+\.txt", text)
    assert [name for name in paths if not (ROOT / name).exists()] == []


WRAPPED = [page for page in PAGES if page.parent.name in ("howto", "tutorial", "explanation")]
WRAPPED += [ROOT / "README.md", ROOT / "docs" / "findings.md"]


@pytest.mark.parametrize("page", WRAPPED, ids=lambda page: page.name)
def test_lines_can_be_read(page):
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")] == []
    assert not re.search("(?m)^(<{7}|>{7}) ", page.read_text(encoding="utf-8")), "a merge is not finished"


def test_the_site_holds_every_page(tmp_path):
    write(tmp_path / "pages")
    assert {*MADE, "index.md", "studies/index.md", "howto/explore.md"} <= {
        path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*.md")
    }
    (tmp_path / "pages" / "howto" / "new.md").write_text("# New")
    (tmp_path / "pages" / "gpu.md").unlink()
    with pytest.raises(ValueError, match=r"nav must name every page of the site, and no other: gpu\.md, howto/new\.md"):
        check_nav(tmp_path / "pages")


def test_a_demonstration_of_other_figures_than_the_commits_is_refused():
    metrics = json.loads((ROOT / "metrics" / "atlas.json").read_text(encoding="utf-8"))
    for top1 in (metrics["dpr"].pop("top1") + 0.001, None):
        with pytest.raises(ValueError, match=r"demo\.zlib: dpr has "):
            demo.check(metrics | {"dpr": metrics["dpr"] | ({"top1": top1} if top1 else {})})


def test_links_are_made_those_of_the_site():
    """They lead from README into docs/, from there out of it; a file that is no page is named without a link."""
    readme, page = Path("README.md"), Path("docs/howto/ci.md")
    assert linked("[a](docs/methods.md#two-hops) [b](params.yaml)", readme) == "[a](methods.md#two-hops) b"
    assert linked("[a](../../README.md) [b](../studies/README.md)", page) == "[a](../index.md) [b](../studies/index.md)"
    assert linked("[a](../../SECURITY.md)", page) == "a"
    assert place(Path("docs/log.md")) == Path("log.md")
    picture = '<img src="docs/images/explorer-overview.png" alt="a">'
    assert linked(picture, readme) == picture.replace("docs/", "")
    with pytest.raises(ValueError, match=r"ci\.md: the link to nowhere\.md names no file"):
        linked("[a](nowhere.md)", page)


def test_a_term_has_a_tooltip_where_it_first_stands_in_text():
    terms = {"placebo": "a positive\n  less", "placebo rate": "a share"}
    text = "# placebo\n`placebo` [placebo](x.md)\nThe placebo rate, no-placebo. Placebos and a placebo.\n"
    html = '<abbr title="a share">placebo rate</abbr>, no-placebo. <abbr title="a positive less">Placebos</abbr> and'
    assert explained(text, terms) == text.replace("placebo rate, no-placebo. Placebos and", html)


def test_names_with_numbers_dates_commits_code_and_tables_are_no_numbers_of_a_page():
    text = "word " * 193 + "4.5 [+1.0, −2] 30 %, Table 2, top-1 of 2026-11-28 at 1a2b3c4, `7`\n| 8 | 9 |\n"
    assert share(text) == pytest.approx(2, abs=0.1)


def test_editors_find_nothing_wrong_in_the_files_as_they_are():
    files = {ROOT / "params.yaml": schema.schema()}
    files |= dict.fromkeys((ROOT / COLLECTIONS).glob("*.yaml"), schema.of_collection())
    for path, rules in files.items():
        assert [error.message for error in Draft202012Validator(rules).iter_errors(read_yaml(path))] == []


def test_every_setting_of_params_stands_in_the_reference():
    page = reference.settings(lambda path: path.read_text(encoding="utf-8"))
    assert set(re.findall(r"(?m)^## (\w+)$", page)) == set(repository.values())
    tau1 = "weight of L\\_HN: the positive against its own distractor (1.0)\n\n*number ≥ 0, default `1.0`, in"
    assert f"### loss.tau1\n\n{tau1} `params.yaml`*\n" in page
    heads = "attention heads; at least 2, must divide width\n\n*integer ≥ 2, default `4`*\n"
    assert f"### annotator.build.heads\n\n{heads}" in page


def test_the_reference_has_the_defaults_of_the_commit(tmp_path):
    path, git = tmp_path / "params.yaml", ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.org"]
    path.write_text("committed")
    assert reference.committed(path) == "committed", "there is no repository"
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "a"]):
        subprocess.run([*git, *words], check=True)
    path.write_text("edited")
    assert reference.committed(path) == "committed"


def test_the_page_of_the_loss_says_what_the_code_gives():
    """The first question's distractor scores as its positive, so L_HN is log 2 there; of the second -log of
    e^3 / (e^3 + e^1), 0.127, so their mean is 0.410. A placebo is in no term of the papers."""
    assert "= 0.693" in one_batch.page()
    assert "Mean of both: **0.410**" in one_batch.page()
    assert one_batch.moved("none")[:, 6:].abs().max() == 0 < one_batch.moved("both")[0, 6]


PAPER = {
    "title": "Paper, Table 1",
    "asks": "Is B better than A?",
    "tables": ["here/one"],
    "again": "001-table7 --collection wiki18",
    "sets": {"NQ": ["nq/test", "made/test"]},
    "columns": ["NQ top-1", "NQ top-100", "NQ AA, who", "NQ small EM, top-5"],
    "rows": [
        ["A", "dpr", 30.0, 80.0, 50.0, 20.0],
        ["B", "eadpr-paper", 32.5, 79.0, 60.0, 20.0],
        ["C", None, 9.0, 9.0, 9.0, 9.0],
    ],
}
OURS = {
    "passages": "12", "command": "one", "commit": "1a2b3c4", "date": "2026-11-25",
    "figures": {"made/test": {
        "dpr-made": {"top-1": "50.0 ± 1.0", "top-100": "90.0", "AA, who": "33.3", "small EM, top-5": "25.0"},
        "eadpr-paper": {"top-1": "40.0 (n=4)", "top-100": "91.5", "AA, who": "66.7", "small EM, top-5": "50.0"},
    }},
    "differences": {"made/test": {"eadpr-paper − dpr-made": {"top-1": "-10.0* [-15.0, -5.0]"}}},
}  # fmt: skip


def test_the_page_of_a_papers_table_has_theirs_ours_and_what_changes(tmp_path):
    """B less A is +2.5 there and -10 here; top-100 and types have no interval here; C has no arm of ours."""
    path = tmp_path / "here" / "one.json"
    path.parent.mkdir()
    path.write_text(json.dumps(OURS), encoding="utf-8")
    tables = [study_tables.read(path)]
    page = paper_tables.page(PAPER, tables)
    for line in (
        "| [here, one](../studies/here/one.md) | 12 | NQ: made/test | `eadpr study one` | 1a2b3c4 (20",
        "| B − A | top-1 | +2.5 | -10.0* [-15.0, -5.0] |", "| B − A | top-100 | -1.0 | +1.5 |",
        "| B − A | AA, who | +10.0 | +33.4 |", "| B − A | small EM, top-5 | +0.0 | +25.0 |",
        "| top-1 | A | 30.0 | 50.0 ± 1.0 | +20.0 |", "| top-1 | B | 32.5 | 40.0 | +7.5 |",
        "| top-1 | C | 9.0 | – | – |",
    ):  # fmt: skip
        assert line in page
    assert paper_tables.verdict([*paper_tables.changes(PAPER, tables)], 3) == [0, 1, 0]


def test_a_table_of_another_collection_joins_its_page(tmp_path, monkeypatch):
    """Sets that it lacks have dashes, as all of a page on relations have."""
    shutil.copytree(paper_tables.STUDIES / "atlas", tmp_path / "atlas")
    for path in shutil.copytree(tmp_path / "atlas", tmp_path / "squad-open").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        changed = {key: {"squad/dev": next(iter(record[key].values()), {})} for key in ("figures", "differences")}
        path.write_text(json.dumps(record | changed), encoding="utf-8")
    monkeypatch.setattr(paper_tables, "STUDIES", tmp_path)
    pages = paper_tables.pages()
    assert [name for name in pages if ("NQ: squad/dev" in pages[name]) != ("NQ: atlas/test" in pages[name])] == []
    assert "NQ: squad/dev, seen: –, unseen: –" in pages["papers/002-table5-1.md"]


def test_the_rows_of_the_papers_are_arms_that_their_studies_train():
    """So a study that is run anew has the names of its page."""
    papers = read_yaml(paper_tables.PAPERS)
    studies = set(repository.studies())
    unknown = []
    for name, paper in papers.items():
        assert paper["again"].split()[0] in studies
        for study in {pattern.rpartition("/")[2] for pattern in paper["tables"]} & studies:
            settings = repository.studies()[study].model_copy(update={"collections": None})
            expanded = expand(settings, repository.values())
            of_sets = {re.sub(r"-(nq|trivia|trec|web)$", "", arm) for arm in expanded["active"]}
            arms = {*expanded["active"], *of_sets, *expanded["multihop"], "bm25", None}
            unknown += [(name, study, arm) for _, arm, *_ in paper["rows"] if arm not in arms]
    assert unknown == []
    with pytest.raises(ValueError, match=r"papers\.yaml: x: no file of docs/studies is one of \['\*/none'\]"):
        paper_tables.tables_of("x", {"tables": ["*/none"]})
