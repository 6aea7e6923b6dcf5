"""The sentence that a question matches, against naive loops over the tokens of each sentence."""

import re

import pandas as pd
import pytest
import torch
from torch.nn.functional import cosine_similarity

import eadpr
from eadpr.runtime.files import read_json, write_json
from eadpr.text.spans import sentences
from eadpr.training.encoder import load
from eadpr.training.sentences import MARK
from tests.small_collection import write_model

QUESTION = "where was w3 w4"
PASSAGES = [
    {"title": "w1", "text": "  W3 w4 w5. Ada was born w9. W6 . W7 w8 w3! "},
    {"text": "w9 w8 w7 w6. W4 w3 w2 w1."},
    " ",
    "w1 " * 18 + ". W3 w4 w5 w6 w7. W9 w9.",  # the third sentence is cut
]


def words_of(encoder, cut, number):
    tokens = encoder.tokenizer.convert_ids_to_tokens(cut.ids)
    return [token for token, sentence in zip(tokens, cut.sentence_of_token.tolist(), strict=True) if sentence == number]


@pytest.mark.parametrize("title", ["pair", "joined", "none"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_each_sentence_has_its_own_words_and_no_other_token(tmp_path, title, lowercase):
    encoder = load(write_model(tmp_path / "model", passage_tokens=40), "passage")
    prompts = encoder.settings.prompts.model_copy(update={"passage": "w9 w9. "})
    encoder.settings = encoder.settings.model_copy(
        update={"title": title, "lowercase": lowercase, "prompts": prompts, "passage_tokens": 40}
    )
    special = "" if lowercase else " [SEP]"
    text = f" w1 İ w2 w3.  W3 w4 w5.{special} W6 w7 ."  # İ in lower case is two characters
    spans = sentences(text)
    cuts = encoder.cut_passages(["w8. w8", ""], [text, text], [spans, spans])
    for cut in cuts:
        words = [words_of(encoder, cut, number) for number in range(3)]
        assert words == [["w1", "[UNK]", "w2", "w3", "."], ["w3", "w4", "w5", "."], ["w6", "w7", "."]]
        assert cut.sentence_of_token[0] == cut.sentence_of_token[-1] == -1
    assert [cut.ids for cut in cuts] == encoder.passage_ids(["w8. w8", ""], [text, text])


@torch.no_grad()
@pytest.mark.parametrize("unit", ["passage", "sentence", "token"])
@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_scores_are_those_of_a_naive_loop_and_the_best_is_the_highest(tmp_path, unit, similarity):
    model = write_model(tmp_path / "model")
    write_json(model / "encoder.json", read_json(model / "encoder.json") | {"unit": unit, "similarity": similarity})
    asks, reads = load(model, "question"), load(model, "passage")
    (question,) = asks.model(input_ids=torch.tensor(asks.question_ids([QUESTION]))).last_hidden_state

    def score(states):
        if unit == "token":
            return sum(max(cosine_similarity(a, b, dim=0) for b in states) for a in question[1:-1]) / 4
        query, mean = question.mean(0), sum(states) / len(states)
        return query @ mean if (unit, similarity) == ("passage", "dot") else cosine_similarity(query, mean, dim=0)

    pointed = eadpr.point(model, QUESTION, PASSAGES)
    for passage, match in zip(PASSAGES, pointed, strict=True):
        row = passage if isinstance(passage, dict) else {"text": passage}
        (ids,) = reads.passage_ids([row.get("title", "")], [row["text"]])
        states = list(reads.model(input_ids=torch.tensor([ids]) % MARK).last_hidden_state[0])[1:-1]
        states = states[2:] if "title" in row else states  # [CLS] w1 [SEP]
        scores = []
        for sentence in match.sentences:
            assert row["text"][sentence.start : sentence.end] == sentence.text
            tokens = re.findall(r"\w+|[^\w\s]", sentence.text)[: len(states)]
            scores.append(float(score(states[: len(tokens)])))
            states = states[len(tokens) :]
        assert states == []
        assert [sentence.score for sentence in match.sentences] == pytest.approx(scores, rel=1e-4, abs=1e-5)
        assert (match.best and match.best.score) == max((sentence.score for sentence in match.sentences), default=None)
    assert [(len(match.sentences), match.cut) for match in pointed] == [(4, 0), (2, 0), (0, 0), (2, 1)]


@pytest.mark.library
def test_a_loaded_model_points_as_its_folder_does(tmp_path):
    from sentence_transformers import SentenceTransformer

    folder = str((write_model(tmp_path / "arm") / "passage_encoder").rename(tmp_path / "plain"))
    loaded = SentenceTransformer(folder, device="cpu")
    assert eadpr.point(loaded, QUESTION, PASSAGES) == eadpr.point(folder, QUESTION, PASSAGES)
    table = pd.DataFrame(PASSAGES[:2])  # with an empty cell
    assert eadpr.point(loaded, QUESTION, table) == eadpr.point(loaded, QUESTION, PASSAGES[:2])
    with pytest.raises(TypeError, match="is no table of rows; rows may be"):
        eadpr.point(loaded, QUESTION, "w1 w2. w3.")
    with pytest.raises(ValueError, match="a function is no encoder"):
        eadpr.point(words_of, QUESTION, PASSAGES)
