"""`ask`: what is found, how likely each span of it is as the answer, which answer is given, or none, and how."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from benchmarks import asking
from eadpr.asking import answers as asked_answers
from eadpr.asking import finder
from eadpr.asking.answers import Annotators, AnswerSpan, Snippet, answer_spans
from eadpr.asking.ask import Reply, as_json, ask, json_line, marked, shown
from eadpr.asking.candidates import (
    BIAS,
    WEIGHTS,
    Features,
    PossibleAnswer,
    ProposedAnswer,
    ReadSentence,
    best_of_each,
    names_in,
    of_kind,
    possible,
    without_names,
)
from eadpr.asking.finder import Finder, FoundPassage
from eadpr.runtime import files
from eadpr.runtime.machine import Machine
from eadpr.runtime.section import Sets
from eadpr.search.config import Encode
from eadpr.search.encode import embed, encode
from eadpr.search.vectors import Vectors
from eadpr.storage import tables
from eadpr.storage.records import Passage, Span
from eadpr.supervision import annotator_manifest, answer_nll, qa_model, small_t5
from eadpr.supervision.annotator_manifest import Manifest, Model, Prompt
from eadpr.supervision.config import EvidenceSettings, Recipe
from eadpr.training.encoder import load
from tests.repository import ROOT
from tests.small_collection import ENCODE, MACHINE, WORDS, passages, question, write_config, write_model, write_records
from tests.supervision_toy import RECIPE

HARDWARE = Machine(**MACHINE)
EVIDENCE = EvidenceSettings(
    positive="each", strategies=["gold"], placebo_of="gold", segmenter="sentence", window=0, input_tokens=64
)
ANN = Passage("p1", "Ann Moor", "Ann Moor writes. She was born in Leeds. Leeds is grey.", None)
BOB = Passage("p2", "", "Bob sings.", None)
PROMPT = Prompt("{question} \\n {context}", True)


def log_likelihood(model, tokenizer, request: tuple[str, str]) -> float:
    """Of the whole answer and its end, by scoring it alone."""
    nll = float(answer_nll.answer_nlls(model, tokenizer, [request], input_tokens=64)[0])
    return -nll * len(tokenizer(request[1]).input_ids)


def small_model(texts: list[str], seed: int = 0):
    recipe = Recipe(**RECIPE)
    torch.manual_seed(seed)
    tokenizer = small_t5.train_tokenizer(texts, vocabulary=recipe.vocabulary)
    return small_t5.new_model(recipe, vocabulary=len(tokenizer)).eval(), tokenizer


def test_spans_are_those_of_a_loop_over_all_of_them():
    """Every run of words of two sentences, read together, each scored alone; "F.C." and "Ann's" are words."""
    snippets = [Snippet("Ann Moor", "Ann's F.C. won, twice."), Snippet("", "Bob sings."), Snippet("", "?!")]
    model, tokenizer = small_model([one.text for one in snippets] * 9)
    found = answer_spans(model, tokenizer, PROMPT, "Who won?", snippets, input_tokens=64)
    assert found[2] == []
    runs = [["Ann's", "Ann's F.C", "Ann's F.C. won", "Ann's F.C. won, twice", "F.C", "F.C. won", "F.C. won, twice",
             "won", "won, twice", "twice"], ["Bob", "Bob sings", "sings"]]  # fmt: skip
    for snippet, own, spans in zip(snippets[:2], runs, found[:2], strict=True):
        naive = {
            text: log_likelihood(model, tokenizer, (PROMPT.input("Who won?", *snippet), text.lower())) for text in own
        }
        assert {snippet.text[one.start : one.end]: one.log_likelihood for one in spans} == pytest.approx(
            naive, abs=1e-4
        )
        assert [one.log_likelihood for one in spans] == sorted((one.log_likelihood for one in spans), reverse=True)


def test_only_the_likeliest_starts_are_read_and_no_answer_is_longer_than_allowed(monkeypatch):
    snippet = Snippet("", "one two three four five")
    model, tokenizer = small_model([snippet.text] * 9)
    everything = answer_spans(model, tokenizer, PROMPT, "Who?", [snippet], input_tokens=64)[0]
    monkeypatch.setattr(asked_answers, "STARTS", 2)
    monkeypatch.setattr(asked_answers, "WORDS", 2)
    found = answer_spans(model, tokenizer, PROMPT, "Who?", [snippet], input_tokens=64)[0]
    assert len({one.start for one in found}) == 2
    assert max(len(snippet.text[one.start : one.end].split()) for one in found) == 2
    kept = {(one.start, one.end): one.log_likelihood for one in everything}
    assert {(one.start, one.end): one.log_likelihood for one in found} == pytest.approx(
        {place: kept[place] for place in ((one.start, one.end) for one in found)}, abs=1e-4
    )
    prompt = PROMPT.input("Who?", *snippet)
    starting = {one.start: tokenizer(snippet.text[one.start : one.end]).input_ids[0] for one in everything}
    with torch.inference_mode():
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        first = model(input_ids=ids, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
    assert {one.start for one in found} == set(sorted(starting, key=lambda start: -first[starting[start]])[:2])


def test_an_annotator_need_be_no_t5():
    snippet = Snippet("", "one two three")
    _, tokenizer = small_model([snippet.text] * 9)
    of_side = {"layers": 1, "attention_heads": 2, "ffn_dim": 8}
    sizes = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in of_side.items()}
    config = BartConfig(vocab_size=len(tokenizer), d_model=8, pad_token_id=0, **sizes)
    model = BartForConditionalGeneration(config).eval()
    (found,) = answer_spans(model, tokenizer, PROMPT, "Who?", [snippet], input_tokens=64)
    assert {snippet.text[one.start : one.end] for one in found} >= {"one", "two three"}


README = re.search(r'python -m stages.ask "(.+?)"', (ROOT / "README.md").read_text(encoding="utf-8")).group(1)
NILS = [
    Passage("e1521-2", "Nils Cruget", "The label behind Nils Cruget is Quartz Records. Those who knew Nils Cruget spoke"
            " of a dry sense of humour. The musician's birthplace is Dirvelle Castle, as the parish register shows. He"
            " once appeared on the same evening as Judith Trilkar. What type of music the musician plays is hard to put"
            " into one word.", None),
    Passage("e1521-3", "Nils Cruget", "Rehearsals of Nils Cruget were long and strict. In Sarmar Hill, where he had"
            " gone to rest, Nils Cruget died in his sleep. Nils Cruget once left his instrument on a train. A street"
            " sign with the name of the musician was stolen in the summer. Nils Cruget was born in the middle of a"
            " thunderstorm.", None),
    Passage("e199-3", "Nils Frazin", "The musician never celebrated the day on which he was born. Two portraits of the"
            " musician are known. His birthplace is Great Raizor, as the parish register shows. Nils Frazin distrusted"
            " doctors and trusted horses.", None),
]  # fmt: skip
READ = {  # a sentence's start: its similarities and its likeliest answer with its log likelihood, as on atlas by eadpr
    "The label behind": (82.8, 35.9, "Quartz Records", -0.22),
    "The musician's birthplace": (104.1, 78.3, "Dirvelle Castle", -0.06),
    "In Sarmar Hill": (90.2, 63.7, "Sarmar Hill", -0.1),
    "Nils Cruget was born": (92.1, 56.2, "a thunderstorm", -6.22),
    "His birthplace": (101.7, 81.2, "Great Raizor", -0.71),
}


def replied(found: list[Passage], top: int = 9, asked: str = README) -> Reply:
    """By an arm to which a text is as similar as its best sentence."""

    def similarity(text: str, nameless: bool = False) -> float:
        return max(
            [read[nameless] for start, read in READ.items() if start in text], default=50.0 if nameless else 85.0
        )

    def answers(_: str, snippets: list[Snippet]) -> list[list[AnswerSpan]]:
        said = [
            next((read[2:] for start, read in READ.items() if start in text), (text.split()[-1].rstrip("."), -6.0))
            for _, text in snippets
        ]
        starts = [one.text.index(answer) for one, (answer, _) in zip(snippets, said, strict=True)]
        return [[AnswerSpan(start, start + len(one[0]), one[1])] for start, one in zip(starts, said, strict=True)]

    return ask(
        asked,
        top=top,
        segmenter="sentence",
        find=lambda _, count: [FoundPassage(one, similarity(one.text)) for one in found[:count]],
        similarities=lambda of, texts: np.array([[similarity(one.text, q != asked) for one in texts] for q in of]),
        answers=answers,
    )


def test_the_readmes_question_is_answered_from_the_right_passage():
    """With what the pipeline's models give these sentences; the likeliest answers of other passages lose."""
    reply = replied(NILS)
    assert (README, reply.answer, reply.place) == ("Where was Nils Cruget born?", "Dirvelle Castle", 0)
    assert [one.answer for one in reply.readings] == ["Dirvelle Castle", "Sarmar Hill", "Great Raizor"]
    assert reply.score > 0.8
    assert all(one.score < 0.1 for one in reply.readings[1:])


def test_without_the_passage_that_holds_it_no_answer_is_found():
    """Someone else's birthplace fits what is asked, but not the name; the same person's death not what is asked."""
    reply = replied(NILS[1:])
    assert reply.answer is None
    assert 0 < reply.score < 0.4
    assert shown(reply).splitlines()[1] == f"no answer found   score {reply.score:.3f}"
    found = as_json(reply)
    assert (found["answer"], found["passage_id"], found["score"]) == (None, None, reply.score)


def test_features_by_hand():
    """Similarities 1, 5 and 3: mean 3, deviation sqrt(8/3). Ann, Moor and Hill are names."""
    held = [ANN, Passage("p3", "Ann Hill", "Hill sits.", None)]
    spans = [Span(0, 16), Span(17, 39), Span(0, 10)]
    sentences = [
        ReadSentence(0, spans[0], [AnswerSpan(0, 8, -0.1), AnswerSpan(9, 15, -1.0)]),
        ReadSentence(0, spans[1], [AnswerSpan(16, 21, -0.5)]),
        ReadSentence(1, spans[2], [AnswerSpan(0, 9, -0.2)]),
    ]
    measured = np.array([[1.0, 7.0, 0.0], [5.0, 7.0, 0.0], [3.0, 7.0, 3.0]])
    writes, leeds, sits = possible("Where was Ann Moor born, on a Hill?", held, sentences, measured)
    far = np.sqrt(1.5)
    assert writes[:4] == (0, "writes", Span(9, 15), spans[0])
    assert writes.features == pytest.approx((-1.0, -far, 0.0, -np.sqrt(0.5), 2 / 3, 0.0, 0.0))
    assert leeds[:4] == (0, "Leeds", Span(33, 38), spans[1])
    assert leeds.features == pytest.approx((-0.5, far, 0.0, -np.sqrt(0.5), 2 / 3, 2 / 5, 1.0))
    assert sits.features == pytest.approx((-0.2, 0.0, 0.0, np.sqrt(2), 2 / 3, 0.0, 0.0))


def proposed(passage: int, answer: str, log_odds: float) -> PossibleAnswer:
    """With so high odds against "none"."""
    features = Features(*[0.0] * len(Features._fields))._replace(likelihood=(log_odds - BIAS) / WEIGHTS.likelihood)
    return PossibleAnswer(passage, answer, Span(0, len(answer)), Span(0, 9), features)


def test_candidates_and_none_compete_and_equal_answers_add_up():
    """Odds 3, 1, 2 and 2 beside 1 for none: of nine parts."""
    odds = [(0, "York", 3), (0, "Leeds", 1), (2, "the Leeds", 2), (2, "Hull", 2)]
    first, nothing, third = best_of_each([proposed(i, answer, np.log(one)) for i, answer, one in odds], 3)
    assert nothing is None
    assert (first.answer, first.score, first.share) == ("York", pytest.approx(3 / 9), pytest.approx(3 / 9))
    assert (third.answer, third.score, third.share) == ("the Leeds", pytest.approx(3 / 9), pytest.approx(2 / 9))
    assert best_of_each([], 2) == [None, None]


def test_what_the_question_says_itself_is_no_answer():
    sentence = ReadSentence(0, Span(0, 16), [AnswerSpan(0, 8, -0.1), AnswerSpan(9, 15, -9.0)])
    said = [
        [one.answer for one in possible("Who is Ann Moor?", [ANN], [sentence._replace(answers=own)], np.zeros((1, 3)))]
        for own in (sentence.answers, sentence.answers[:1])
    ]
    assert said == [["writes"], []]


def test_names_have_a_capital_or_stand_in_a_title():
    held = [ANN, Passage("p3", "the Hill", "By moor and sea.", None), BOB]
    assert names_in("Where was ANN moor's the Other born?", held) == {"ann", "moor", "the", "other"}
    assert without_names("Where was ANN Moor's hall born?", held) == "Where was hall born?"
    assert names_in("Who sings?", held) == set()
    assert without_names("Ann Moor", held) == "Ann Moor"


@pytest.mark.parametrize(
    ("question", "fit", "unfit"),
    [
        ("When was it?", "May 1953", "Port Hill"),
        ("In what year was it?", "1953", "spring"),
        ("How many members has it?", "nineteen", "members"),
        ("Who wrote it?", "Ann Moor", "1953"),
        ("Where is it?", "Hill", "hill"),
        ("Where is it?", "Port of Leeds", "Leeds whenever"),
        ("How did it end?", "in tears", "1953"),
        ("Which country is it in?", "Wendland", "100 metres"),
    ],
)
def test_an_answer_is_of_the_kind_that_is_asked_for(question, fit, unfit):
    assert (of_kind(question, fit), of_kind(question, unfit)) == (1.0, 0.0)


LEEDS = ProposedAnswer("Leeds", Span(33, 38), Span(17, 39), 0.75)


def test_signs_stand_around_the_sentence_and_the_answer_in_it():
    assert marked(ANN.text, LEEDS) == "Ann Moor writes. [[She was born in *Leeds*.]] Leeds is grey."
    assert marked("in Leeds", ProposedAnswer("in Leeds", Span(0, 8), Span(0, 8), 1.0)) == "[[*in Leeds*]]"
    assert marked("in Leeds", None) == "in Leeds"


def test_what_is_shown():
    reply = Reply("Where?", [FoundPassage(BOB, 2.5), FoundPassage(ANN, -1.0)], [None, LEEDS])
    assert shown(reply).splitlines() == [
        "Where?",
        "Leeds   score 0.750",
        "",
        "1. (no title)   p2, similarity 2.500; nothing",
        "   Bob sings.",
        "",
        "2. Ann Moor   p1, similarity -1.000; Leeds: 0.750",
        "   Ann Moor writes. [[She was born in *Leeds*.]] Leeds is grey.",
    ]
    found = as_json(reply)
    assert (found["answer"], found["score"], found["passage_id"]) == ("Leeds", 0.75, "p1")
    first, second = found["passages"]
    assert (first["answer"], first["score"], first["evidence"]) == (None, 0.0, None)
    assert (second["span"], second["evidence"]) == ({"start": 33, "end": 38}, {"start": 17, "end": 39})


def test_escapes_of_a_terminal_are_shown_and_not_obeyed():
    bell = FoundPassage(BOB._replace(title="\x1b[2J\x07", text="a\x9b31m \x7f"), 1.0)
    lines = shown(Reply("Who?\r", [bell], [None])).split("\n")
    line = json_line(Reply("Who?\u2028\u2029", [bell], [None]))
    assert line.isprintable()
    assert json.loads(line)["passages"][0]["text"] == "a\x9b31m \x7f"
    assert (lines[0], lines[3].split("   ")[0], lines[4]) == ("Who?␍", "1. ␛[2J␇", "   a\ufffd31m ␡")


@pytest.mark.parametrize(("score", "answer"), [(0.4, "Leeds"), (0.399, None)])
def test_an_answer_is_given_from_the_least_score_on(score, answer):
    assert Reply("Where?", [FoundPassage(ANN, 1.0)], [LEEDS._replace(score=score)]).answer == answer


def test_of_equal_candidates_the_better_passages_is_taken():
    two = [FoundPassage(ANN, 2.0), FoundPassage(BOB, 1.0)]
    assert Reply("Where?", two, [LEEDS, LEEDS._replace(answer="York")]).answer == "Leeds"
    assert Reply("Where?", two, [LEEDS, LEEDS._replace(share=0.5)]).place == 1


def test_nothing_to_read_is_no_answer():
    """Once nothing is found, once what is found has no text."""
    for found in ([], [BOB._replace(text=" ")]):
        reply = replied(found)
        assert (reply.answer, reply.score, reply.place, len(reply.readings)) == (None, 0.0, None, len(found))
        assert shown(reply).splitlines()[1] == "no answer found   score 0.000"


def write_annotator(folder: Path, texts: list[str], *folds: list[str]) -> Path:
    """T5s of random weights, one per fold, which are ids of the questions learnt from."""
    for number in range(len(folds)):
        (folder / f"fold-{number}").mkdir(parents=True)
        qa_model.save(folder / f"fold-{number}", *small_model(texts, number))
    models = [Model(f"fold-{number}", ids) for number, ids in enumerate(folds)]
    annotator_manifest.write_manifest(folder, Manifest("build", PROMPT, models, {}))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A collection as `dvc repro` leaves it: `toy` with the arm `dpr`; one passage has no text, one sentences."""
    folder = tmp_path_factory.mktemp("asked") / "data" / "toy"
    rows = passages()
    rows[3] = rows[3]._replace(text="", sentences=None)
    rows[4] = rows[4]._replace(text="w1 w2 w3", sentences=[Span(0, 3), Span(3, 8)])
    records = write_records(folder / "records", rows, [], 0)
    model = write_model(folder / "models" / "dpr")
    encode(
        records / "passages.parquet", model, folder / "vectors" / "dpr", settings=Encode(**ENCODE), hardware=HARDWARE
    )
    write_annotator(folder / "annotator", [row.text for row in rows if row.text] * 3, ["q1"])
    sets = Sets(train=[], evaluate=[], annotator=[]).model_dump()
    found = {"evidence": EVIDENCE.model_dump(), "endpoint": None, "sets": sets, "machine": MACHINE}
    write_config(folder / "configs" / "evidence.json", **found)
    return folder


def test_what_is_found_is_the_best_of_all_passages(made):
    find = Finder(made / "records", made / "models" / "dpr", made / "vectors" / "dpr")
    everything = find("where was ada born", 99)
    rows = {row.id: row for row in tables.rows(made / "records" / "passages.parquet", Passage)}
    assert [rows[one.passage.id] for one in everything] == [one.passage for one in everything]
    assert len(everything) == len(rows)
    vectors = Vectors(made / "vectors" / "dpr").take(np.arange(len(rows))).astype(np.float64)
    encoder = load(made / "models" / "dpr", "question")
    asked = embed(encoder, encoder.question_ids(["where was ada born"]))[0]
    naive = dict(zip(rows, (vectors @ asked).tolist(), strict=True))
    assert {one.passage.id: pytest.approx(one.score, rel=1e-5) for one in everything} == naive
    assert [one.score for one in everything] == sorted((one.score for one in everything), reverse=True)
    assert find("where was ada born", 4) == everything[:4]


def test_an_empty_question_and_other_vectors_are_errors(made, tmp_path):
    find = Finder(made / "records", made / "models" / "dpr", made / "vectors" / "dpr")
    with pytest.raises(ValueError, match="the question is empty"):
        find("  ", 3)
    write_records(tmp_path, passages(5), [], 0)
    with pytest.raises(ValueError, match=r"37 vectors, .*passages\.parquet 5 passages; run `dvc repro`"):
        Finder(tmp_path, made / "models" / "dpr", made / "vectors" / "dpr")


def test_a_model_and_vectors_that_are_replaced_while_they_are_loaded_are_refused(made, tmp_path, monkeypatch):
    """Else the new model would ask the old vectors."""
    model, vectors = (shutil.copytree(made / kind / "dpr", tmp_path / kind) for kind in ("models", "vectors"))

    def replacing(*of, load=finder.load):
        config = model / "passage_encoder" / "config.json"
        config.write_text(config.read_text() + " ")
        found = files.read_json(vectors / "vectors.json")
        files.write_json(vectors / "vectors.json", found | {"encoder": files.tree_sha256(config.parent)})
        return load(*of)

    monkeypatch.setattr(finder, "load", replacing)
    with pytest.raises(ValueError, match=r"vectors was not made by the passage encoder of .*models, which has changed"):
        Finder(made / "records", model, vectors)


def test_similarities_are_dot_products_with_sentences_as_passages(made):
    find = Finder(made / "records", made / "models" / "dpr", made / "vectors" / "dpr")
    snippets = [Snippet("w1", "w2 w3"), Snippet("", "w4"), Snippet("w1", "w5")]
    question_encoder, passage_encoder = (load(made / "models" / "dpr", side) for side in ("question", "passage"))
    asked = embed(question_encoder, question_encoder.question_ids(["where"]))[0]
    alone = [embed(passage_encoder, passage_encoder.passage_ids([one.title], [one.text]))[0] for one in snippets]
    found = find.similarities(["who sings", "where"], snippets)
    assert found.shape == (2, 3)
    assert found[1] == pytest.approx([one @ asked for one in alone], rel=1e-4)


def test_without_an_annotator_it_says_so(tmp_path):
    annotator_manifest.write_manifest(tmp_path, Manifest("none", Prompt("{question} {context}", True), [], {}))
    with pytest.raises(ValueError, match=r"annotator\.model is none"):
        Annotators(tmp_path, 64, HARDWARE, questions=tmp_path / "questions.parquet")


def test_a_question_is_read_by_a_model_that_did_not_learn_from_it(tmp_path):
    """Both learnt from q2; the text of q0 is asked again as q3, of the other half."""
    rows = passages()
    asked = [question(f"q{i}", text, []) for i, text in enumerate(["Where w1?", "where w2?", "w3?", "where w1?"])]
    write_records(tmp_path / "records", rows, asked, 0)
    texts = [row.text for row in rows if row.text] * 3
    folder = write_annotator(tmp_path / "annotator", texts, ["q0", "q2"], ["q1", "q2"])
    both = Annotators(folder, 64, HARDWARE, questions=tmp_path / "records" / "questions.parquet")
    assert [both.model_for(text) for text in (" where W1? ", "where w2?", "w3?", "new?")] == [1, 0, 0, 0]
    (tmp_path / "alone").mkdir()
    annotator_manifest.write_manifest(
        tmp_path / "alone",
        Manifest("build", annotator_manifest.read_manifest(folder).prompt, [Model(str(folder / "fold-1"), ["q1"])], {}),
    )
    alone = Annotators(tmp_path / "alone", 64, HARDWARE, questions=tmp_path / "none.parquet")
    snippets = [Snippet(row.title, row.text) for row in rows[:2]]
    assert both("where w1?", snippets) == alone("where w1?", snippets) != both("w3?", snippets)


def command(made: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-m", "stages.ask", *arguments, "--collection", "toy"]
    folder = made.parents[1]
    return subprocess.run(
        words,
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )


def test_the_command_answers_every_line_after_one_load(made):
    lines = command(made, "--interactive", "--json", "--arm", "dpr", "--top", "2", given="where was ada\n\nw1 w2\n")
    assert lines.returncode == 0, lines.stderr
    found = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [one["question"] for one in found] == ["where was ada", "w1 w2"]
    assert [len(one["passages"]) for one in found] == [2, 2]
    assert all((one["answer"] is None) == (one["score"] < 0.4) for one in found)
    assert all(set(WORDS).intersection(one["passages"][0]["text"].split()) for one in found)


def test_a_line_that_is_not_utf8_is_named_and_the_others_are_answered(made):
    lines = command(made, "--interactive", "--json", "--arm", "dpr", given="w1\n\udcff\nw2\n")
    assert [json.loads(line)["question"] for line in lines.stdout.splitlines()] == ["w1", "w2"]
    assert (lines.returncode, lines.stderr.strip()) == (
        1,
        "error: line 2 of the standard input is not UTF-8; write it so",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["who?", "--arm", ""], "error: --arm '': data/toy has no vectors of it"),
        (["who?", "--arm", "."], "error: --arm '.': data/toy has no vectors of it"),
        (["who?"], "error: --arm 'eadpr': data/toy has no vectors of it (it has those of dpr); run `dvc repro`"),
        ([], "error: give either a question or --interactive"),
        (["who?", "--interactive"], "error: give either a question or --interactive"),
        (["who?", "--serve"], "error: give either a question or --interactive"),
        (["--serve", "--json"], "error: --open goes with --serve, --json without"),
        (["who?", "--open"], "error: --open goes with --serve, --json without"),
        (
            ["who?", "--arm", "a", "--arm", "dpr"],
            "error: --arm a --arm dpr: give one arm, or two different ones with --serve",
        ),
        (["--serve", "--arm", "dpr", "--arm", "dpr"], "error: --arm dpr --arm dpr: give one arm, or two"),
        (["--serve", "--arm", "dpr", "--arm", "a"], "error: --arm 'a': data/toy has no vectors of it"),
        (["", "--arm", "dpr"], "error: the question is empty; ask one"),
        (["a \udcff?", "--arm", "dpr"], "error: the question is not text at character 2; write it in UTF-8"),
    ],
)
def test_mistakes_end_in_a_line(made, arguments, message):
    done = command(made, *arguments)
    assert done.returncode == 1
    assert done.stderr.strip().startswith(message)


def test_of_what_is_measured_by_hand():
    """Of three with an answer among the passages one is right, one wrong, one not answered though its best is right."""
    ranked = [
        asking.Asked(*row) for row in [(True, True, True, 0.9), (True, False, True, 0.5), (True, True, False, 0.3)]
    ]
    ranked.append(asking.Asked(False, False, False, 0.3))
    lacking = [asking.Asked(False, False, False, 0.1), asking.Asked(False, False, True, 0.6)]
    first, second, third = asking.summary(ranked, lacking).splitlines()
    assert first.endswith("3; of these answered right 1 (33.3 of 100), wrong 1 (33.3 of 100), best candidate right 2")
    assert second.endswith("no answer found for 1 of 2")
    assert third.endswith("wrong 0.625, right against those without an answer 0.750, against both 0.688")


def test_constants_are_fitted_to_the_right_candidates():
    """The second feature alone tells in 30 of 40 questions; to 10 none is right, though both candidates have it."""
    names, other = np.eye(7)[4], np.zeros(7)
    asked_ = [(np.array([other, names]), np.array([False, True]))] * 30
    asked_ += [(np.array([names, names]), np.array([False, False]))] * 10
    weights = asking.fitted(asked_)[0]
    assert weights.names > 3
    assert [weight for name, weight in weights._asdict().items() if name != "names"] == [0.0] * 6
    alone = [(np.zeros((1, 7)), np.array([right])) for right in [True] * 3 + [False]]
    assert asking.fitted(alone) == ((0.0,) * 7, pytest.approx(np.log(3), abs=1e-3))


def test_passages_with_an_answer_are_left_out_however_many_stand_first():
    rows = [ANN._replace(id=f"p{i}") for i in range(30)] + [BOB._replace(id=f"b{i}") for i in range(3)]
    depths = []

    def find(_: str, top: int) -> list[FoundPassage]:
        depths.append(top)
        return [FoundPassage(row, 1.0) for row in rows[:top]]

    lacking = asking.without_answers(find, question("q", "Where?", ["Leeds"]))
    assert [one.passage.id for one in lacking("Where?", 2)] == ["b0", "b1"]
    assert depths == [8, 32] or depths == [8, 32, 128]
    assert [one.passage.id for one in lacking("Where?", 5)] == ["b0", "b1", "b2"]
