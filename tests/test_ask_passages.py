"""Questions written about passages: which sentences, what is asked, what is kept, and that `add` takes them."""

import json

import pytest
import torch
from typer.testing import CliRunner

from eadpr.settings import user_command
from eadpr.settings.add_command import main as add
from eadpr.settings.yaml import read_yaml
from eadpr.storage.records import Passage, Span
from eadpr.supervision import small_t5
from eadpr.supervision.config import Recipe
from eadpr.training.pretrained import save_whole
from eadpr.writers import ask
from eadpr.writers.ask import ask_passages, choose_sentences, make_prompt
from eadpr.writers.command import main
from tests.chat_server import CutOff, chatting
from tests.repository import ROOT
from tests.supervision_toy import RECIPE

pytestmark = pytest.mark.writers

TEXT = "Ada was born in old London. Nobody knows. She wrote the very first program."
ADA = Passage("p1", "Ada", TEXT, None)
LONG = [Span(0, 27), Span(42, 75)]


def test_sentences_of_five_words_are_asked_about_unless_they_are_the_whole_passage():
    assert choose_sentences(ADA, 9, seed=0) == LONG
    choices = {tuple(choose_sentences(ADA, 1, seed=seed)) for seed in range(20)}
    assert choices == {(span,) for span in LONG}
    assert choose_sentences(Passage("p2", "", TEXT[:27], None), 9, seed=0) == []


def test_passages_are_read_whole_or_named(tmp_path, capsys):
    for name in ("a.txt", "b.pdf", "c.html", "d.pdf"):
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    assert [passage.text for passage in ask.read_passages(tmp_path, {}, None)] == [TEXT]
    assert capsys.readouterr().err == f"{tmp_path}: not read: 2 .pdf, 1 .html\n"
    (tmp_path / "p.jsonl").write_text(2 * (json.dumps(ADA._asdict()) + "\n"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"p\.jsonl: 2 passages have the id 'p1'"):
        ask.read_passages(tmp_path / "p.jsonl", {}, None)


def test_a_prompt_shows_the_sentence_alone_or_marked_in_its_passage():
    task = ADA, LONG[0]
    assert make_prompt("{title}: {sentence} {x}", task) == "Ada: Ada was born in old London. {x}"
    assert (
        make_prompt("{marked}", task)
        == "<hl> Ada was born in old London. <hl> Nobody knows. She wrote the very first program."
    )


PASSAGES = [
    Passage(f"p{i}", f"Town {i}", f"Town{i} lies by the river Wen{i}. It was founded by duke Odo{i}.", None)
    for i in range(6)
]
WRITTEN = ["question: By which  river lies Town0?", None, " ?! ", '"Which river?"', "Which river?"]
WRITTEN.append("<think>\nWell.\n</think>\n\nQuestion: Where is Town0?")


def test_only_questions_that_find_their_passage_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(ask, "choose_sentences", lambda passage, count, seed: [Span(0, passage.text.index(".") + 1)])
    prompts = []

    def write(texts):
        prompts.extend(texts)
        return WRITTEN

    counts = ask_passages(PASSAGES, write, "{sentence}", tmp_path / "out", sample=None, per_passage=1, within=1, seed=0)
    assert prompts == [f"Town{i} lies by the river Wen{i}." for i in range(6)]
    # Which of equal ones is first for "Which river?" is BM25's order by id; p5's question is about p0.
    expected = {"asked": 6, "cut_off": 1, "empty": 1, "repeated": 1, "kept": 1, "not_found": 2}
    assert counts == expected
    (row,) = map(json.loads, (tmp_path / "out" / "questions.jsonl").read_text().splitlines())
    assert row == {
        "question": "By which river lies Town0?", "positives": ["p0"], "answer_start": [0],
        "evidence": ["Town0 lies by the river Wen0."],
    }  # fmt: skip
    passages = list(map(json.loads, (tmp_path / "out" / "passages.jsonl").read_text().splitlines()))
    assert passages == [{"id": p.id, "title": p.title, "text": p.text} for p in PASSAGES]
    with pytest.raises(ValueError, match="is there already"):
        ask_passages(PASSAGES, write, "{sentence}", tmp_path / "out", sample=None, per_passage=1, within=1, seed=0)
    with pytest.raises(ValueError, match=r"must hold \{sentence\} or \{marked\}"):
        ask_passages(PASSAGES, write, "{text}", tmp_path / "new", sample=None, per_passage=1, within=1, seed=0)
    with pytest.raises(ValueError, match="none of 0 passages"):
        ask_passages([], write, "{sentence}", tmp_path / "new", sample=None, per_passage=1, within=1, seed=0)


def test_a_sample_of_the_passages_is_asked_about_and_all_are_written(tmp_path):
    samples = set()
    for seed in range(5):
        out = tmp_path / str(seed)
        counts = ask_passages(PASSAGES, list, "{sentence}", out, sample=2, per_passage=9, within=6, seed=seed)
        questions = list(map(json.loads, (out / "questions.jsonl").read_text().splitlines()))
        asked = frozenset(row["positives"][0] for row in questions)
        assert (len(asked), counts["kept"]) == (2, 4), "both sentences of each"
        assert len((out / "passages.jsonl").read_text().splitlines()) == len(PASSAGES)
        samples.add(asked)
    assert len(samples) > 1, "another seed draws others"


def test_a_sequence_to_sequence_model_writes_what_it_learnt_whatever_is_beside_it_in_the_batch(tmp_path, monkeypatch):
    prompts = ["ada", "ada was born", "nobody knows. she wrote the very first program", "program"]
    learnt = ["who was born?", "where was ada born?", "who wrote the first program?", "which?"]
    tokenizer = small_t5.train_tokenizer([*prompts, *learnt] * 3, vocabulary=512)
    torch.manual_seed(0)
    model = small_t5.new_model(Recipe(**RECIPE | {"dropout": 0.0}), vocabulary=len(tokenizer))
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    batch = dict(tokenizer(prompts, padding=True, return_tensors="pt"))
    labels = tokenizer(learnt, padding=True, return_tensors="pt").input_ids
    for _ in range(150):
        model(**batch, labels=labels.masked_fill(labels == tokenizer.pad_token_id, -100)).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    save_whole(tmp_path / "t5", model.eval(), tokenizer)
    write = ask.write_by_seq2seq(str(tmp_path / "t5"))
    assert [text.strip() for text in write(prompts)] == learnt
    assert [write([prompt])[0].strip() for prompt in prompts] == learnt
    monkeypatch.setattr(ask, "INPUT_TOKENS", len(tokenizer(prompts[2]).input_ids) - 1)
    assert [text is None for text in write(prompts)] == [False, False, True, False], "the marks may be cut off"
    monkeypatch.setattr(ask, "OUTPUT_TOKENS", 2)
    assert write(prompts) == [None] * 4


def says(body: dict) -> str:
    """A question with all the words of the sentence."""
    sentence = body["messages"][0]["content"].partition("Sentence: ")[2].partition("\n")[0]
    return CutOff("Who") if "Wen3" in sentence else f"Is it true that {sentence.rstrip('.')}?"


def test_a_folder_of_documents_becomes_a_collection_with_gold_evidence(tmp_path):
    documents = tmp_path / "documents"
    documents.mkdir()
    for passage in PASSAGES:
        (documents / f"{passage.id}.txt").write_text(passage.text)
    with chatting() as server:
        server.says = says
        words = f"{documents} --out {tmp_path / 'out'} --model m --url {server.url} --per-passage 2".split()
        done = CliRunner().invoke(user_command.app(main), words, catch_exceptions=False)
    assert "ask-passages: 11 of 12 questions kept (1 cut_off)" in done.stdout
    params = tmp_path / "params.yaml"
    params.write_text((ROOT / "params.yaml").read_text())
    words = f"mine {done.stdout.partition('eadpr add NAME ')[2]} --no-dvc --params {params}".split()
    done = CliRunner().invoke(user_command.app(add), words, catch_exceptions=False)
    assert "MODEL" not in done.stdout, "nothing must find the evidence"
    settings = read_yaml(tmp_path / "data/collections/mine.yaml")["settings"]
    assert (settings["annotator"], settings["examples"]) == ({"model": "none"}, {"strategy": "gold"})
    assert settings["evidence"] == {"strategies": ["gold", "placebo", "placebo_second"], "placebo_of": "gold"}


def test_without_a_model_the_sentences_are_the_questions(tmp_path):
    (tmp_path / "p.txt").write_text(TEXT)
    words = f"{tmp_path} --out {tmp_path / 'out'} --per-passage 2".split()
    done = CliRunner().invoke(user_command.app(main), words, catch_exceptions=False)
    assert "2 of 2 questions kept" in done.stdout
    rows = list(map(json.loads, (tmp_path / "out" / "questions.jsonl").read_text().splitlines()))
    assert (
        [row["question"] for row in rows]
        == [TEXT[slice(*span)] for span in LONG]
        == [*rows[0]["evidence"], *rows[1]["evidence"]]
    )


def test_an_address_without_a_model_is_refused(tmp_path):
    words = f"{tmp_path} --out {tmp_path / 'out'} --url http://localhost:1/v1".split()
    with pytest.raises(ValueError, match="--url needs --model"):
        CliRunner().invoke(user_command.app(main), words, catch_exceptions=False)
