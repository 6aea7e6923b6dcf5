"""The page of a study and its numbers, from the Markdown of a report."""

import pytest

from eadpr.studies.page import UNDECIDED, parse_report, write_page

pytestmark = pytest.mark.studies
REPORT = """# here: 12 passages

## made/test: 4 questions

| %     |      top-1 | top-100 | controlled AA |
|:------|-----------:|--------:|--------------:|
| dpr   | 50.0 ± 1.0 |    90.0 |    60.0 (n=3) |
| eadpr | 40.0 ± 2.0 |    91.5 |    70.0 (n=3) |

Differences in percentage points:

| difference  |                top-1 |
|:------------|---------------------:|
| eadpr − dpr | -10.0* [-15.0, -5.0] |

The same for each training:

| difference  |             top-1 |
|:------------|------------------:|
| eadpr − dpr | -3.0 [-15.0, +5.0] |

AA (%) by question type:

| type | pairs |  dpr | eadpr |
|:-----|------:|-----:|------:|
| who  |     3 | 33.3 |  66.7 |

| arm | behind | pairs | first |
|:----|-------:|------:|------:|
| dpr |     AA |     3 | 18.02 |

## more/test: 2 questions

| %     | top-1 |
|:------|------:|
| dpr   |   1.0 |

# Answers of the reader small

## made/test: 4 questions

| %     | EM, top-5 |
|:------|----------:|
| dpr   |      25.0 |
"""
RECORD = {"about": "Why?", "command": "one", "commit": "1a2b3c4", "date": "2026-11-28", "report": "abc"}


def test_the_numbers_of_a_report_by_set_arm_and_metric():
    numbers = parse_report(REPORT)
    assert (numbers["passages"], numbers["questions"]["more/test"]) == ("12", "2 questions")
    assert numbers["figures"]["made/test"]["dpr"] == {
        "top-1": "50.0 ± 1.0", "top-100": "90.0", "controlled AA": "60.0 (n=3)", "AA, who": "33.3", "AA, pairs": "3",
        "AA, first": "18.02", "small EM, top-5": "25.0",
    }  # fmt: skip
    assert numbers["differences"] == {"made/test": {"eadpr − dpr": {"top-1": "-10.0* [-15.0, -5.0]"}}}


def test_a_page_has_question_tables_verdict_command_and_commit():
    page = write_page("one, here", RECORD | parse_report(REPORT))
    parts = [" ".join(part.split()) for part in page.split("\n\n")]
    assert parts[:3] == ["# one, here", "Why?", "## made/test: 4 questions, 12 passages"]
    assert parts[3].startswith("| % | top-1 | controlled AA | small EM, top-5 |")
    assert parts[4] == "Differences in percentage points:"
    assert "| eadpr − dpr | -10.0* [-15.0, -5.0] |" in parts[5]
    assert parts[6:8] == [UNDECIDED, "`eadpr study one`"]
    assert "1a2b3c4 (2026-11-28); report md5 abc" in parts[8]


def test_a_page_of_many_arms_stays_short():
    arms = {f"arm{n}": {"top-1": "1.0"} for n in range(30)}
    pairs = {f"arm{n} − arm0": {"top-1": "+1.0"} for n in range(30)}
    numbers = parse_report(REPORT) | {"figures": {"a/b": arms}, "differences": {"a/b": pairs}}
    page = write_page("one, here", RECORD | numbers | {"questions": {"a/b": "4 questions"}})
    assert page.count("\n") <= 40
    assert page.count("more in the JSON") == 2
