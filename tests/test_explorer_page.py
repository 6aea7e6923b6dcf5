"""The explorer's page in Debian's Chromium, without network."""

import csv
import io
import json
import re
import shutil
import zlib
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import sync_playwright

from docs import demo, pictures
from eadpr.explorer import command, explore
from eadpr.runtime import files
from tests import explorer_toy
from tests.evaluated import REPORT, SETS
from tests.repository import ROOT

pytestmark = pytest.mark.explorer
VIEWS = ["", "#view=questions&type=who&cell=0-1", "#question=q1&a=eadpr"]


@pytest.fixture(scope="module")
def chromium():
    if shutil.which("chromium") is None:
        pytest.skip("no chromium (apt-get install chromium)")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return explorer_toy.page(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def visit(chromium, toy):
    """A function that opens the page and waits until it stands; no network, no error and no line on the console."""
    contexts, wrong = [], []

    def opened(fragment: str = "", path: Path = toy, script: str = "", **options):
        contexts.append(chromium.new_context(**{"viewport": {"width": 1280, "height": 800}} | options))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text))
        page.route(lambda url: not url.startswith("file://"), lambda route: wrong.append(route.request.url))
        if script:
            page.add_init_script(script)
        page.goto(f"{path.as_uri()}{fragment}")
        page.wait_for_selector("html[data-ready] main > *, #alert:not([hidden])")
        if "question=" in fragment:
            page.wait_for_selector("#heading, #alert:not([hidden])")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def texts(page, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def table(page, selector: str) -> dict[str, list[str]]:
    rows = [row.split("\t") for row in page.locator(f"{selector} tbody tr").all_inner_texts()]
    return {row[0].strip().splitlines()[0]: [cell.strip() for cell in row[1:]] for row in rows}


def facet(page, name: str):
    return page.locator(".facet", has_text=re.compile(f"^{name}"))


def until(page, expression: str) -> None:
    """Playwright's own way of waiting evaluates strings in the page, which its policy forbids."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"still not: {expression}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", VIEWS)
def test_axe_finds_nothing_wrong_and_at_320_pixels_nothing_scrolls_sideways(visit, fragment, scheme):
    page = visit(fragment, color_scheme=scheme)
    violations = Axe().run(page).response["violations"]
    assert [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations] == []
    page.set_viewport_size({"width": 320, "height": 600})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_overview_says_what_was_found_shows_means_and_differences_and_explains_itself(visit):
    page = visit()
    assert "eadpr puts an answering passage first for 75.0 % of 4 questions" in texts(page, "#headline")[0]
    about = "5 passages · main/dev: 4 questions · base model scratch · seed 1 · commit 1234567 of 2026-11-28"
    assert texts(page, ".about > p") == [about]
    assert page.locator(".about li").all_text_contents() == ["loss.tau1=0.5", "train.steps=5"]
    ranking = table(page, "[aria-label=Ranking] .means")
    assert [ranking[row][0].split()[0] for row in ("bm25", "dpr", "eadpr")] == ["50.0", "0.0", "75.0"]
    assert "▲ +75.0" in " ".join(ranking["eadpr"][0].split())
    assert [*table(page, "[aria-label='Answer awareness'] .means")] == ["dpr", "eadpr"]
    assert "another seed can turn an arrow" in page.locator("#footnote").inner_text()
    assert "eadpr 75.0 at 1, 75.0 at 2" in page.locator(".plot svg").get_attribute("aria-label")
    term = page.get_by_role("button", name="AA", exact=True)
    term.focus()
    assert "without the answer" in page.locator("#tip").inner_text()
    assert "without the answer" in page.locator(f"#{term.get_attribute('aria-describedby')}").inner_text()
    page.get_by_text("What these figures rest on").click()
    assert "4 with a ranking" in page.get_by_role("region", name="Counts").inner_text()


def test_sentences_of_the_report_stand_below_the_table_as_text(visit, toy, tmp_path):
    folder = shutil.copytree(toy.parent, tmp_path / "toy")
    notes = files.read_json(folder / "toy" / "notes.json")
    notes |= {"collection": ["**eadpr** is <b>best</b>: `eadpr publish`."], "sets": {"main/dev": ["Low."]}}
    files.write_json(folder / "toy" / "notes.json", notes)
    several = REPORT.model_copy(update={"compare": {"eadpr": ["bm25", "dpr"]}})
    explore.run(explorer_toy.paths(folder), tmp_path / "page.html", "toy", several, SETS, {})
    page = visit("", tmp_path / "page.html")
    differences = " ".join(table(page, "[aria-label=Ranking] .means")["eadpr"][0].split())
    assert re.findall(r"\+(\S+) \S+ to \S+ against (\w+)", differences) == [("25.0", "bm25"), ("75.0", "dpr")]
    assert texts(page, ".note") == ["eadpr is <b>best</b>: eadpr publish.", "Low."]
    assert (texts(page, ".note strong"), texts(page, ".note code")) == (["eadpr"], ["eadpr publish"])


def test_filters_leave_the_questions_and_measures_that_one_counts_by_hand(visit):
    page = visit()
    page.get_by_role("button", name="An example of these").click()
    page.wait_for_selector(".why")
    assert texts(page, "#heading") == [explorer_toy.QUESTION]
    page.get_by_role("button", name="Overview").click()
    page.get_by_role("button", name="Questions that eadpr gets right and dpr does not").click()
    assert page.locator("#left").inner_text() == "3 of 4 questions left."  # q1, q2, q4
    measures = table(page, "#measures")
    assert measures["bm25"] == ["33.3", "100.0", "66.7", "–", "–"]  # ranks 2 2 1
    assert measures["dpr"] == ["0.0", "33.3", "27.8", "66.7", "50.0"]  # ranks 2 - 3; a tie and a cut pair in AA
    assert measures["eadpr"] == ["100.0", "100.0", "100.0", "100.0", "100.0"]
    facet(page, "when").click()
    assert texts(page, ".questions tbody .question") == ["when was the moon landing"]
    assert texts(page, ".chip") == [
        f"{chip} × ; take this filter away" for chip in ("when: 1", "eadpr right: 3", "dpr wrong: 4")
    ]
    assert facet(page, "who").inner_text().split() == ["who", "+1", "−0", "of", "1"]
    page.get_by_role("button", name="when: 1").click()
    assert page.locator("#left").inner_text() == "3 of 4 questions left."
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Change of at least").fill("2")
    assert page.locator("#left").inner_text() == "3 of 4 questions left."  # eadpr over dpr: 1, 3, -2, 2
    page.get_by_role("button", name="eadpr over dpr").click()
    assert texts(page, ".questions tbody td:last-child")[1:-1] == ["▲ 3", "▲ 2", "▼ 2"]
    page.get_by_label("Change of at least").fill("0")
    facet(page, "founded by").click()
    assert texts(page, ".questions tbody .relation") == ["founded by (P112)"]
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Search questions").fill("NAME remus")
    assert texts(page, ".questions tbody .question") == ["name the twin of Rome's founder"]
    facet(page, "2 hops, bridge").click()
    page.get_by_label("Search questions").fill("nobody asked this")
    assert "No question fits" in page.locator(".questions").inner_text()
    assert table(page, "#measures")["dpr"][0] == "–"


def test_rank_against_rank_counts_every_question_and_filters_by_a_click(visit):
    page = visit("#view=questions")
    rows = page.locator(".grid tbody tr").all_inner_texts()
    assert rows == ["1\t\t1\t1\t1", "2\t\t\t\t", "3\t\t\t\t", "none\t\t1\t\t"]
    page.get_by_role("button", name="1 with eadpr at none, dpr at 2").click()
    assert texts(page, ".questions tbody .question") == ["in which film"]
    assert texts(page, ".chip") == ["eadpr at none, dpr at 2: 1 × ; take this filter away"]
    assert texts(visit(page.evaluate("location.hash")), "#left") == ["1 of 4 questions left."]


def test_the_address_holds_the_whole_state(visit):
    page = visit("#view=questions")
    page.get_by_label("Compare").select_option("bm25")
    facet(page, "who").click()
    page.get_by_role("button", name="bm25 right, dpr wrong").click()
    page.get_by_label("Right: a hit among the first").fill("2")
    page.get_by_label("Search questions").fill("rome")
    until(page, "location.hash.includes('find=rome')")
    address = page.evaluate("location.hash")
    again = visit(address)
    assert again.evaluate("location.hash") == address
    assert facet(again, "who").get_attribute("aria-pressed") == "true"
    values = "[...document.querySelectorAll('.filters select, .filters input, #compare select')].map(one => one.value)"
    assert again.evaluate(values) == page.evaluate(values)
    assert texts(again, "#left") == texts(page, "#left") == ["0 of 4 questions left."]


def test_an_address_that_names_what_is_not_here_says_so_and_shows_the_rest(visit):
    page = visit("#view=questions&a=ance&type=when&question=q99&k=0&what=<img>&__proto__=x")
    message = page.locator("#alert").inner_text()
    for part in ("a “ance”", "question “q99”", "k “0”", "what “<img>”", "__proto__ “x”"):
        assert part in message
    assert texts(page, ".questions tbody .question") == ["when was the moon landing"]


def test_two_rankings_stand_side_by_side_with_lines_marks_and_scores(visit):
    page = visit("#question=q1&a=eadpr&b=dpr")
    assert texts(page, "#heading") == [explorer_toy.QUESTION]
    lines = page.locator(".wires path")
    assert lines.evaluate_all("all => all.map(one => one.dataset.passage).sort()") == ["0", "1", "2"]
    assert texts(page, ".ranking:first-child .there") == ["dpr 3", "dpr 2", "dpr 1"]
    first = page.locator(".ranking").first.locator("li").first
    assert texts(first, ".mark.answer") == texts(first, ".mark.pseudo") == ["Romulus"]
    assert texts(first, ".mark.gold")[0].startswith("It was founded by")
    wrong = page.locator(".ranking").nth(1).locator("li").first
    assert (texts(first, ".mark.matched"), texts(wrong, ".mark.matched")) == ([], ["A title"])
    assert texts(wrong, ".soft") == ["p4 · the sentence that matches best: 2.50"]
    second = page.locator(".ranking").nth(1).locator("li").nth(1)
    assert "perhaps" not in second.inner_text()
    assert texts(second, ".badge .unseen") == ["holds an answer", "no positive"]
    forms = table(page, ".forms")
    fell, rose, cut = forms["without its evidence (the distractor)"]
    assert (fell, rose.split()[:2], cut) == ("0.50 −4.50", ["2.50", "+0.50"], "“Romulus”")
    assert texts(page, ".why li") == [
        "eadpr: 1st; without its evidence below 2nd; without another sentence 1st.",
        "dpr: 3rd; without its evidence 1st; without another sentence below 2nd. First stands p4, “Romulus”, which"
        " holds no answer; its sentence that matches best: A title",
    ]
    page.get_by_role("button", name="+0.50").focus()
    assert page.locator("#tip").inner_text().startswith("Higher than the passage as it is")
    assert texts(page, "article .mark.removed") == ["Romulus"]
    assert texts(page, "article .mark.placebo") == ["was"]
    page.get_by_label("with").select_option("bm25")
    assert texts(page, ".ranking h3") == ["eadpr", "bm25"]


def test_hostile_texts_are_shown_as_text(visit):
    page = visit("#question=q1")
    page.get_by_role("button", name="Show all texts").click()
    assert explorer_toy.HOSTILE in page.locator("article .text").inner_text()
    assert explorer_toy.HOSTILE in page.locator("article h4").inner_text()
    assert page.evaluate(
        "[document.title, document.images.length, document.querySelectorAll('script[src]').length]"
    ) == ["eadpr · toy <b>& · 2026-11-28", 0, 0]
    assert page.locator("h1").inner_text() == "toy <b>&"


def test_everything_can_be_done_with_the_keyboard(visit):
    page = visit(viewport={"width": 1280, "height": 300})  # so low that rows are scrolled to
    page.keyboard.press("/")
    page.keyboard.type("r")
    assert page.locator("#left").inner_text() == "2 of 4 questions left."  # Rome twice
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "when was the moon landing"
    page.keyboard.press("Enter")
    page.wait_for_selector("#heading")
    assert page.evaluate("document.activeElement.id") == "heading"
    page.keyboard.press("j")
    until(page, "document.getElementById('heading').textContent === 'in which film'")
    page.keyboard.press("k")
    page.keyboard.press("k")
    until(page, "location.hash.includes('question=q1')")
    page.keyboard.press("Escape")
    page.wait_for_selector(".questions")
    until(page, "scrollY > 0 && document.activeElement.textContent.startsWith('Who founded')")
    page.get_by_role("button", name="Type", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Type ↑"


@pytest.mark.parametrize(("fragment", "name", "expected"), [
    ("#view=questions&find=rome", "questions", {"id": "q1", "question": explorer_toy.QUESTION, "rank dpr": "2"}),
    ("#question=q1", "q1", {"arm": "eadpr", "rank": "1", "id": "p1", "text": f"'{explorer_toy.TEXT}"}),
])  # fmt: skip
def test_what_is_shown_is_downloaded(visit, tmp_path, fragment, name, expected):
    page = visit(fragment)
    contents = {}
    for kind in ("CSV", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Download {kind}").click()
        download.value.save_as(tmp_path / kind)
        assert download.value.suggested_filename == f"toy _b_&-{name}.{kind.lower()}"
        contents[kind] = (tmp_path / kind).read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(contents["CSV"], newline="")))
    assert rows[0] | expected == rows[0]
    assert [[*record, record["id"]] for record in json.loads(contents["JSON"])] == [[*row, row["id"]] for row in rows]


def test_the_demonstration_is_a_page_of_some_questions(visit, toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compressed, means = tmp_path / "made.zlib", ("Overview", "section")
    compressed.write_bytes(zlib.compress(json.dumps(demo.shorten(demo.read(toy))).encode()))
    for has_page, data in enumerate((command.DATA, compressed)):
        monkeypatch.setattr(command, "DATA", data)
        assert ("own pages: reports/mine.html" in command.main(tmp_path / "demo.html", browse=False)) == has_page
        page = visit("", tmp_path / "demo.html")
        assert texts(page, ".note")[0].startswith("A demonstration: ")
        for width, view, scroller in ((1024, *means), (1280, *means), (1280, "Questions", "details")):
            page.set_viewport_size({"width": width, "height": 800})
            page.get_by_role("button", name=view, exact=True).click()
            parts = f"[document.documentElement, ...document.querySelectorAll('main {scroller}')]"
            assert page.evaluate(f"{parts}.every(part => part.scrollWidth <= part.clientWidth)"), (width, view)
        page.get_by_role("button", name="Overview").click()
        page.get_by_role("button", name="An example of these").click()
        page.wait_for_selector(".why")
        files.write_text(tmp_path / "reports" / "mine.html", "")
        assert re.search("eadpr: 1st; without its evidence (below )?[2-9]", texts(page, ".why li")[0])


def test_the_pictures_of_the_page_are_made_anew_in_their_sizes(chromium, toy, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    pictures.take_explorer(chromium, toy, "light", ".png")
    for name in ("explorer-overview.png", "explorer-question.png", "explorer-narrow.png"):
        remade, committed = Image.open(tmp_path / name), Image.open(ROOT / "docs" / "images" / name)
        assert (remade.size, len(remade.getcolors()) > 9) == (committed.size, True), name


def test_a_browser_that_cannot_unpack_says_so(visit):
    page = visit(script="delete window.DecompressionStream")
    assert "DecompressionStream" in page.locator("#alert").inner_text()


def test_without_javascript_the_page_says_what_is_needed(chromium, toy):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(toy.as_uri())
    assert "runs no JavaScript" in page.locator("main").inner_text()
    context.close()
