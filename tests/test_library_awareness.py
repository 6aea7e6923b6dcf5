"""Awareness of any model: what is made of a row, what is measured, and what is refused."""

import json
import math
import re
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    CrossEncoder,
    MultiVectorEncoder,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    SparseEncoder,
)
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel
from typer.testing import CliRunner

from eadpr.library.awareness import METRICS, awareness, cell, table
from eadpr.library.evaluator import AwarenessEvaluator
from eadpr.library.losses import EvidenceLoss
from eadpr.library.scorers import Scorer, bm25, make_scorer
from eadpr.library.texts import Texts, annotate, distractors, read_rows, training_rows
from eadpr.library.units import UNITS
from eadpr.settings import command, user_command
from stages import probe_model
from tests.repository import ROOT
from tests.small_collection import write_model
from tests.test_encoder_settings import PROMPTS
from tests.test_encoder_settings import write_model as write_base

pytestmark = pytest.mark.library

ADA = "Ada was born in London. Her mother liked it there much. She wrote it."
ROW = {"question": "Where was Ada born?", "answers": ["London"], "text": ADA, "title": "Ada"}
NONE = {"question": "When?", "answers": ["1815"], "text": "Nothing is said of it here.", "title": ""}


def test_what_is_made_of_a_row():
    first, second = distractors([ROW, NONE])
    rows = [ROW, NONE, ROW | {"answers": ["x"], "answer_kind": "regex"}]
    assert list(annotate(rows)) == [([(0, 23)], None), ([], "no_evidence"), ([], "no_answer")]
    assert first.variants == {
        "positive": ADA,
        "distractor": "Her mother liked it there much. She wrote it.",
        "masked": "Ada was born in. Her mother liked it there much. She wrote it.",
        "placebo": "Ada was born in London. She wrote it.",
        "placebo_second": "Ada was born in London. Her mother liked it there much.",
        "placebo_words": first.variants["placebo_words"],
        "placebo_inside": first.variants["placebo_inside"],
    }
    assert len(first.variants["placebo_words"].split()) == len(first.variants["placebo_inside"].split()) == 13
    assert first.reasons == {}
    assert second.variants == {"positive": NONE["text"]}
    assert second.reasons["distractor"] == "no_evidence"


@pytest.mark.parametrize("asks", [{"evidence": "window", "window": 1}, {"evidence": "answer"}])
def test_distractors_that_are_not_cut_as_sentences_are_have_no_placebo_of_a_sentence(asks):
    """One with a hole in a sentence has all its sentences."""
    (texts,) = distractors([ROW], **asks)
    assert "distractor" in texts.variants
    assert texts.reasons["placebo"] == "cut_otherwise"
    results = awareness(by_length, [texts])
    assert set(METRICS) - set(results) == {"placebo", "controlled_aa_evidence"}
    assert results["controlled_aa"].interval.n == 1, "words are taken out of both"
    assert [row["placebo"] for row in training_rows([texts], "{title} {text}")] == [f"Ada {ADA}"]
    with pytest.raises(ValueError, match="no row has both a distractor and a placebo"):
        AwarenessEvaluator([texts])


def test_a_data_frame_is_rows_as_it_comes_out_of_a_file(tmp_path):
    """Lists are arrays then, numbers numpy's, and a cell without a value None or NaN."""
    rows = [ROW | {"id": 1}, NONE | {"id": 2, "title": None}]
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    read = pd.read_parquet(tmp_path / "rows.parquet")
    assert isinstance(read["answers"][0], np.ndarray)
    expected = list(distractors([*rows[:1], NONE | {"id": 2}]))
    assert list(distractors(read)) == expected == list(distractors(Dataset.from_list(rows)))
    assert list(distractors(read.fillna({"title": math.nan}))) == expected
    assert list(distractors(read.convert_dtypes().to_dict("records"))) == expected, "pandas' NA"
    assert list(distractors(Dataset.from_list(rows).data.table)) == expected, "Arrow's"


@pytest.mark.parametrize("rows", [ROW, "rows.jsonl", [("Where?", ["London"], ADA)], {"train": [ROW]}, None, 5])
def test_what_is_no_row_is_refused_with_what_rows_may_be(rows):
    for read in (lambda rows: list(annotate(rows)), lambda rows: awareness(by_length, rows)):
        with pytest.raises(TypeError, match=r"^(row 0 is .*, no dictionary|.* is no table of rows); rows may be dict"):
            read(rows)


def test_rows_are_measured_as_what_is_made_of_them():
    expected = awareness(by_length, distractors([ROW]))
    for rows in ([ROW], iter([ROW]), pd.DataFrame([ROW]), table := Dataset.from_list([ROW]), table.data.table):
        assert awareness(by_length, rows) == expected
    assert list(training_rows([ROW])) == list(training_rows(distractors([ROW])))


def test_answers_that_are_written_as_a_list_are_one():
    for answers in (("London", "Rome"), "['London', 'Rome']", "London"):
        (annotation,) = annotate([{"question": "Where?", "answers": answers, "text": "Ada was in London. She left."}])
        assert annotation.evidence == [(0, 18)]
    with pytest.raises(ValueError, match=r"row 0: answers is .*, expected a list of texts"):
        list(annotate([{"question": "Where?", "answers": "{'text': array(['London'])}", "text": ADA}]))


def test_rows_to_train_on():
    first, second = training_rows(distractors([ROW, NONE]), join="{title}: {text}")
    assert first == {
        "question": ROW["question"],
        "positive": f"Ada: {ADA}",
        "distractor": "Ada: Her mother liked it there much. She wrote it.",
        "placebo": "Ada: Ada was born in London. She wrote it.",
    }
    assert second == {"question": "When?", **dict.fromkeys(("positive", "distractor", "placebo"), NONE["text"])}


def test_a_sampler_without_duplicates_keeps_rows_with_missing_texts():
    rows = training_rows(Texts(f"{i}?", "", {"positive": f"w{i}"}, {}) for i in range(4))
    sampler = NoDuplicatesBatchSampler(Dataset.from_list(list(rows)), batch_size=2, drop_last=False)
    assert list(map(len, sampler)) == [2, 2]


@pytest.mark.parametrize(("rows", "arguments", "match"), [
    ([ROW, ROW | {"answers": 3}], {}, "row 1: answers is 3"),
    ([ROW, ROW | {"text": None}], {}, "row 1: text is None"),
    ([ROW, ROW | {"answers": ["["], "answer_kind": "regex"}], {}, r"row 1: answers.0. is '\['"),
    ([ROW, ROW | {"answer_kind": "list"}], {}, "row 1: answer_kind is 'list'"),
    ([{"text": "x"}], {}, "row 0: field 'question' is missing"),
    ([ROW], {"evidence": "gold"}, "evidence is 'gold'; use one of pseudo, sentence"),
    ([ROW], {"evidence": "pseudo"}, "`annotator`"),
])  # fmt: skip
def test_bad_rows_and_arguments_are_named(rows, arguments, match):
    with pytest.raises(ValueError, match=match):
        list(distractors(rows, **arguments))


def by_length(questions, titles, passages):
    return [float(len(text)) for text in passages]


def test_a_model_that_scores_by_length_looks_aware_and_is_not():
    results = awareness(by_length, distractors([ROW, NONE, ROW]))
    assert set(results) == set(METRICS)
    for metric in ("aa", "aa_evidence", "placebo", "placebo_words"):
        assert results[metric].interval.estimate == 1, metric
    assert results["aa"].interval.n == 2
    assert results["controlled_aa_evidence"].interval.estimate == 0, "the placebo is longer than the evidence"
    few, enough = (table({"length": awareness(by_length, distractors([ROW] * count))}) for count in (29, 30))
    assert ("(n=29)" in few, few.splitlines()[-1][:31]) == (True, "A share of fewer than 30 pairs ")
    assert ("(n=30)" in enough, "fewer than" in enough) == (True, False)


LATE = {"question": "When was she born?", "answers": ["1815"], "text": "She was old. Born 1815 was she.", "title": ""}


def interval(*rows):
    """AA-evidence of a model that knows Ada: it is right about ROW and wrong about LATE."""
    results = awareness(lambda _, __, passages: [float(text.startswith("Ada")) for text in passages], distractors(rows))
    return results["aa_evidence"].interval


def test_intervals_are_over_questions():
    rng, questions = np.random.default_rng(3), [f"{i}?" for i in (0, 1, 1, 2, 3, 3, 3, 4, 5, 1)]
    rows = [(ROW if rng.random() < 0.5 else LATE) | {"question": question} for question in questions]
    right = [row["text"] == ADA for row in rows]
    pairs = list(zip(right, questions, strict=True))
    groups = [[correct for correct, name in pairs if name == question] for question in dict.fromkeys(questions)]
    samples = np.random.default_rng(0).integers(len(groups), size=(10_000, len(groups)))
    means = [np.mean([correct for i in sample for correct in groups[i]]) for sample in samples]
    expected = (np.mean(right), *np.quantile(means, [0.025, 0.975]), len(rows))
    assert interval(*rows) == pytest.approx(expected, abs=1e-12)
    assert interval(ROW, LATE | {"question": ROW["question"]}) == (0.5, 0.0, 1.0, 2), "of one question nothing is known"


def test_a_model_that_knows_the_answer_is_aware_and_controlled():
    def knows(questions, titles, passages):
        return [float("London" in text) for text in passages]

    results = awareness(knows, distractors([ROW]))
    shares = {metric: result.interval.estimate for metric, result in results.items()}
    assert shares["aa"] == shares["aa_evidence"] == 1
    assert shares["controlled_aa"] == shares["controlled_aa_evidence"] == shares["controlled_aa_inside"] == 1
    assert shares["placebo"] == shares["placebo_words"] == shares["placebo_inside"] == 0


def test_pairs_beyond_the_models_input_are_left_out_and_counted():
    blind = Scorer(by_length, lambda titles, passages: [text[:10] for text in passages])
    results = awareness(blind, distractors([ROW]))
    assert (results["aa"].cut, results["aa"].interval.n, math.isnan(results["aa"].interval.estimate)) == (1, 0, True)
    assert results["aa_evidence"].cut == 0, "the evidence is the first sentence"
    assert results["controlled_aa_evidence"].cut == 1, "the placebo lies beyond"
    assert re.search(r"–[^–]*\n\nPairs left out, as blind does not .*: 1 of AA, .*1 of cont", table({"blind": results}))


def test_a_prompt_takes_room_of_the_models_input(tmp_path):
    row = {"question": "w1", "answers": ["paris"], "text": "W3 w4. W5 w6. W7 paris.", "title": ""}
    model = SentenceTransformer(str(write_model(tmp_path / "arm") / "passage_encoder"), device="cpu")
    model.max_seq_length = len(model.tokenizer("w3 w4. w5 w6.").input_ids) + 2  # of a prompt, but not of the evidence
    assert awareness(model, distractors([row]))["aa_evidence"].cut == 0
    model.prompts = {"document": "w1 w2 "}
    assert awareness(model, distractors([row]))["aa_evidence"].cut == 1


def test_a_static_model_reads_all_of_a_text():
    words = Tokenizer(WordLevel({word: i for i, word in enumerate(["[UNK]", "London", "Ada"])}, "[UNK]"))
    words.pre_tokenizer = Whitespace()
    static = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    assert awareness(static, distractors([ROW]))["aa"].interval.n == 1


@pytest.mark.parametrize(("model", "message"), [
    (lambda *_: [1.0], r"scores of shape \(1,\) for 7 texts"),
    (lambda questions, *_: [math.nan] * len(questions), "the score of row 0, positive, is nan"),
    (3, "a int is no model"),
])  # fmt: skip
def test_models_that_do_not_score_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        awareness(model, distractors([ROW]))
    with pytest.raises(ValueError, match="no row to measure with"):
        awareness(by_length, [])


def test_bm25_by_hand():
    score = bm25([{"title": "a", "text": "b"}, "b c d"])
    idf_a, norm = math.log(1 + 1.5 / 1.5), 0.9 * (1 - 0.4 + 0.4 * 2 / 2.5)
    assert score(["a z"], [""], ["A b"]) == pytest.approx([idf_a / (1 + norm)])
    with pytest.raises(ValueError, match="needs texts"):
        bm25([])


QUESTIONS, TITLES, PASSAGES = ["w1 w2", "w3"], ["ada", ""], ["w4 w5 paris", "london w7"]
JOINED = ["ada w4 w5 paris", "london w7"]
PYLATE = {"model_type": "ColBERT", "do_query_expansion": False, "document_length": 12}


def write_other(folder, kind):
    """A model of another class of transformers above the small encoder's tokenizer."""
    encoder = write_model(folder / "small") / "passage_encoder"
    config = BertConfig.from_pretrained(encoder, num_labels=1)
    torch.manual_seed(0)
    kind(config).save_pretrained(folder / "other")
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder / "other")
    return folder / "other"


def test_a_model_named_is_scored_as_it_says_of_itself_and_as_it_is_when_loaded(tmp_path):
    """It scores by cosine, with its prompts, title and text joined by a space."""
    folder = write_base(tmp_path / "model", "bert", pooling="cls", prompts=PROMPTS, dense=(8,))
    loaded = SentenceTransformer(str(folder), device="cpu")
    vectors = loaded.encode_query(QUESTIONS), loaded.encode_document(JOINED)
    expected = (vectors[0] * vectors[1]).sum(1)
    for model in (folder, loaded):
        np.testing.assert_allclose(make_scorer(model).score(QUESTIONS, TITLES, PASSAGES), expected, atol=1e-5)
    assert make_scorer(folder).inputs(TITLES, PASSAGES) == make_scorer(loaded).inputs(TITLES, PASSAGES)
    with_colon = loaded.encode_document(["ada: w4 w5 paris", "london w7"])
    scores = make_scorer(folder, "{title}: {text}").score(QUESTIONS, TITLES, PASSAGES)
    np.testing.assert_allclose(scores, (vectors[0] * with_colon).sum(1), atol=1e-5)


def test_a_cross_encoder_is_scored_by_its_logit(tmp_path):
    folder = write_other(tmp_path, BertForSequenceClassification)
    model, tokenizer = BertForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        expected = model.eval()(**tokenizer(QUESTIONS, JOINED, padding=True, return_tensors="pt")).logits[:, 0]
    for source in (folder, CrossEncoder(str(folder), device="cpu")):
        scorer = make_scorer(source)
        assert scorer.score(QUESTIONS, TITLES, PASSAGES) == pytest.approx(expected.tolist(), abs=1e-5)
        assert scorer.inputs(TITLES, PASSAGES) == JOINED
    CrossEncoder(str(folder), device="cpu").save_pretrained(str(tmp_path / "saved"))
    assert make_scorer(tmp_path / "saved").score(QUESTIONS, TITLES, PASSAGES) == pytest.approx(expected.tolist())


@pytest.mark.parametrize(("kind", "architecture", "pylate"), [
    (SparseEncoder, BertForMaskedLM, {}), (MultiVectorEncoder, BertModel, {}), (MultiVectorEncoder, BertModel, PYLATE),
])  # fmt: skip
def test_weights_of_terms_and_vectors_of_tokens_have_their_own_similarity(tmp_path, kind, architecture, pylate):
    """Each text is encoded once, and rows are put together after that. PyLate's files name its own class."""
    kind(str(write_other(tmp_path, architecture)), device="cpu").save_pretrained(str(saved := tmp_path / "saved"))
    if pylate:
        first, layer, *_ = json.loads((saved / "modules.json").read_text())
        (saved / "modules.json").write_text(json.dumps([first, layer | {"type": "pylate.models.Dense.Dense"}]))
        (saved / "config_sentence_transformers.json").write_text(json.dumps(pylate))
    model = kind(str(saved), device="cpu")
    expected = model.similarity(model.encode_query(QUESTIONS), model.encode_document(JOINED))
    questions, titles, passages = QUESTIONS * 2, *(np.repeat(texts, 2).tolist() for texts in (TITLES, PASSAGES))
    for scorer in (make_scorer(model), make_scorer(saved)):
        np.testing.assert_allclose(scorer.score(questions, titles, passages), expected.T.flatten().tolist(), rtol=1e-5)
        assert len(scorer.inputs([""], ["w1 " * 99])[0]) == pylate.get("document_length", 24)
        assert awareness(scorer, distractors([ROW]))["aa"].interval.n == 1


@pytest.mark.parametrize(("change", "match"), [
    ({"config.json": {"architectures": ["HF_ColBERT"]}}, r"config\.json: HF_ColBERT is no encoder of one vector"),
    ({"config_sentence_transformers.json": {"model_type": "Reranker"}}, "model_type Reranker is not known here"),
    ({"modules.json": [{"path": "", "type": "pylate.models.Dense.Dense"}, {"path": "", "type": "evil.M"}],
      "config_sentence_transformers.json": PYLATE}, "modules.json: holds pylate.models.Dense.Dense, which"),
    ({"modules.json": [{"path": "", "type": "pylate.models.Dense.Dense"}]}, "holds pylate.models.Dense.Dense, which"),
    ({"modules.json": [{"path": "", "type": "sentence_transformers.models.Router"}],
      "config_sentence_transformers.json": {"model_type": "SparseEncoder"},
      "router_config.json": {"types": {"a": "evil.M"}}}, "modules.json: holds evil.M, which is no class of"),
])  # fmt: skip
def test_what_cannot_be_scored_is_refused_by_name_before_it_is_loaded(tmp_path, change, match):
    """A mean of its vectors would be none of its own."""
    for name, content in change.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=match):
        make_scorer(tmp_path)


def write_rows(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(*words):
    return CliRunner().invoke(user_command.app(probe_model.main), list(map(str, words)))


def test_the_command_prints_a_model_per_row(tmp_path, monkeypatch):
    arm, path = write_model(tmp_path / "arm"), tmp_path / "rows.jsonl"
    words = [arm, "--rows", path, "--bm25"]
    write_rows(path, ROW, NONE)
    done = run(*words)
    assert done.exit_code == 0, done.exception
    assert "1 of 2 rows have no answer in their text" in done.stderr
    header, _, *rows = done.stdout.partition("\n\n")[0].splitlines()
    assert "controlled AA-evidence" in header
    assert [row.split("|")[1].strip() for row in rows] == [str(arm), "bm25"]
    seen = []
    monkeypatch.setattr("eadpr.library.scorers.bm25", lambda corpus: seen.extend(corpus) or by_length)
    write_rows(path, ROW, ROW | {"question": "Who was born?"}, NONE)
    assert run(*words).exit_code == 0
    assert "--units has no row for BM25" in str(run(*words, "--units").exception)
    assert seen == [f"{row['title']} {row['text']}" for row in (ROW, NONE)], "each passage once, with its title"


def test_units_rank_the_passages_of_all_rows_and_know_evidence_as_each_unit_does(tmp_path):
    arm, path = write_model(tmp_path / "arm"), tmp_path / "rows.jsonl"
    texts = ["London was w1. Ada born there.", "W4 w5.\n\nParis w6 w7 w8.\n\nW9 was capital.", f"1912{20 * ' w1'}. W2."]
    rows = [
        {"question": f"where was {answer}", "answers": [answer], "text": text, "title": f"w{i}"}
        for i, (answer, text) in enumerate(zip(["London", "Paris", "1912"], texts, strict=True))
    ]
    write_rows(path, *rows, rows[1] | {"question": "capital"})  # a passage of two rows is ranked once
    done = run(arm, "--rows", path, "--units")
    assert done.exit_code == 0, done.exception
    assert done.stdout.endswith(f"|\n\n{arm} does not read 1 sentence of these passages, beyond its cut.\n")
    header, _, *lines, _, _ = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert header[1:] == ["top-1 of 3 passages", "controlled AA-evidence"]
    questions, right = [*(row["question"] for row in rows), "capital"], [0, 1, 2, 1]
    queries, titles, passages = zip(*((q, f"w{i}", t) for q in questions for i, t in enumerate(texts)), strict=True)
    for (name, top1, controlled), (unit, changes) in zip(lines, UNITS.items(), strict=True):
        settings = json.loads((arm / "encoder.json").read_text()) | changes
        (arm / "encoder.json").write_text(json.dumps(settings))
        best = make_scorer(arm).score(queries, titles, passages).reshape(4, 3).argmax(1)
        assert (name, top1) == (f"{arm}, {unit}", f"{100 * np.mean(best == right):.1f}")
        assert controlled == cell(awareness(arm, distractors(read_rows(path, {})))["controlled_aa_evidence"])


@pytest.mark.parametrize(("rows", "match"), [
    ([NONE], "nothing is measured"), ([], "holds no rows; fill it, or fetch"),
    ([{"asked": "?", "answers": ["x"], "text": "x"}], "line 1: there is no column for question"),
])  # fmt: skip
def test_rows_that_the_command_cannot_use_are_named(tmp_path, rows, match):
    write_rows(tmp_path / "rows.jsonl", *rows)
    error = run(write_model(tmp_path / "arm"), "--rows", tmp_path / "rows.jsonl").exception
    assert isinstance(error, ValueError)
    assert f"{tmp_path / 'rows.jsonl'}" in str(error)
    assert match in str(error)


def test_sentence_transformers_that_is_not_installed_is_asked_for(tmp_path, monkeypatch):
    """Before the rows are read and a QA model looks for evidence; an encoder of one vector a text needs none."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (tmp_path / "rows.jsonl").write_text("not a row")
    arm = write_model(tmp_path / "arm")
    error = run(write_other(tmp_path, BertForSequenceClassification), "--rows", tmp_path / "rows.jsonl").exception
    assert isinstance(error, command.USER_ERRORS)
    assert ", a CrossEncoder, needs sentence-transformers; pip install 'eadpr[sentence-tr" in str(error)
    assert make_scorer(arm)
    assert make_scorer(arm / "passage_encoder")


def test_rows_of_files(tmp_path):
    table = 'question;answers;text\nWhere?;London;x London\nWhen?;"[""1815"", ""15""]";in 1815\nWhy?;;x\n'
    (tmp_path / "rows.csv").write_text(table)
    assert [row["answers"] for row in read_rows(tmp_path / "rows.csv")] == ["London", ["1815", "15"], ""]
    assert ["masked" in row.variants for row in distractors(tmp_path / "rows.csv")] == [True, True, False]
    answered = {"id": "a", "question": "Where?", "answers": [{"text": "London", "answer_start": 16}]}
    impossible = {"id": "b", "question": "Why?", "answers": [], "is_impossible": True}
    page = {"title": "Ada", "paragraphs": [{"context": ADA, "qas": [answered, impossible]}]}
    (tmp_path / "dev.json").write_text(json.dumps({"data": [page]}))
    (row,) = read_rows(tmp_path / "dev.json")
    place = {"answers": ["London"], "answer_start": [16], "title": "Ada", "text": ADA}
    assert row == {"id": "a", "question": "Where?"} | place


def test_a_list_written_as_text_is_a_list_in_other_files_too(tmp_path):
    expected = {"['London', 'Paris']": ["London", "Paris"], '["a\\u0062"]': ["ab"]}
    expected |= {text: text for text in ("[0-9]+", "[12]", "[x")}  # patterns
    (tmp_path / "rows.json").write_text("".join(f"{json.dumps(ROW | {'answers': text})}\n" for text in expected))
    assert [row["answers"] for row in read_rows(tmp_path / "rows.json")] == list(expected.values())
    kinds = [{"answers": "['ab']", "answer_kind": "regex"}, {"answers": "['London' 'Paris']"}]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(ROW | kind)}\n" for kind in kinds))
    rows = read_rows(tmp_path / "rows.jsonl")
    assert next(rows)["answers"] == "['ab']", "a class of characters"
    with pytest.raises(ValueError, match=r"line 2: answers is .*, expected a list of texts"):
        next(rows)


def test_the_pages_code_runs(capsys):
    page = (ROOT / "docs" / "howto" / "awareness.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {"ROWS": [ROW, NONE]}
    exec(compile(code, "page", "exec"), names)
    assert "| by length | 100.0 [20.7, 100.0] (n=1)" in capsys.readouterr().out
    assert names["columns"][1]["distractor"] == names["columns"][1]["positive"]


def test_an_evaluator_measures_while_sentence_transformers_trains(tmp_path):
    texts = list(distractors([ROW | {"text": "W1 w2 paris. W3 w4 w5. W6 london w7.", "answers": ["paris"]}] * 2))
    model = SentenceTransformer(str(write_model(tmp_path / "arm") / "passage_encoder"), device="cpu")
    evaluator = AwarenessEvaluator(texts, name="dev")
    results = evaluator(model)
    assert evaluator.primary_metric == "dev_controlled_aa_evidence"
    assert results == {f"dev_{metric}": result.interval.estimate for metric, result in awareness(model, texts).items()}
    rows = Dataset.from_list(list(training_rows(texts)))
    arguments = SentenceTransformerTrainingArguments(
        tmp_path / "out", max_steps=2, eval_strategy="steps", eval_steps=1, save_steps=1, report_to="none",
        load_best_model_at_end=True, metric_for_best_model="eval_dev_controlled_aa_evidence", use_cpu=True,
    )  # fmt: skip
    loss = EvidenceLoss(model, roles=rows.column_names)
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=rows, loss=loss, evaluator=evaluator)
    trainer.train()
    logged = [log["eval_dev_controlled_aa_evidence"] for log in trainer.state.log_history if "eval_dev_aa" in log]
    assert len(logged) == 2
    assert trainer.state.best_metric == max(logged)
    model.max_seq_length = 4
    with pytest.raises(ValueError, match="in each of 2 rows what is removed lies beyond the model's input"):
        evaluator(model)
