"""Fusion-in-Decoder: its encoder's states against a naive loop, what it learns, that it survives being killed."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from transformers.modeling_outputs import BaseModelOutput

from eadpr.readers import fid
from eadpr.readers.answer import FusionAnswerer, answer_questions
from eadpr.readers.config import Reader
from eadpr.readers.fid import FusionReader, decoder_inputs
from eadpr.readers.kinds import load
from eadpr.readers.lessons import FusionExample, FusionExamples, fusion_terms
from eadpr.readers.predictions import Prediction
from eadpr.readers.selection import QuestionPaths
from eadpr.runtime.machine import device
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage
from eadpr.supervision import small_t5
from eadpr.supervision.config import Recipe
from eadpr.supervision.manifest import Manifest, Model, Prompt, write_manifest
from eadpr.training import loop
from eadpr.training.pretrained import save_whole
from tests import reading_toy
from tests.reading_toy import READ, READER, write_reading
from tests.supervision_toy import RECIPE
from tests.toy_records import question
from tests.training_toy import CITIES, MACHINE, NAMES, series

pytestmark = [pytest.mark.readers, pytest.mark.usefixtures("one_thread")]

FID = Reader.model_validate(READER.model_dump() | {"kind": "fid", "learning_rate": 1e-2, "passages": 2})
EVALUATED = range(3, len(NAMES), 4)


def write_annotator(folder: Path, texts: list[str]) -> Path:
    """A folder as the stage `annotator` leaves it, of a T5 with random weights."""
    recipe = Recipe.model_validate(RECIPE | {"width": 32, "feed_forward": 32, "vocabulary": 600})
    tokenizer = small_t5.train_tokenizer(texts, vocabulary=recipe.vocabulary)
    torch.manual_seed(1)
    save_whole(folder / "fold-0", small_t5.new_model(recipe, vocabulary=len(tokenizer)), tokenizer)
    manifest = Manifest("build", Prompt("{question} \\n {context}", lowercase=True), [Model("fold-0", [])], {})
    write_manifest(folder, manifest)
    return folder


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = write_reading(tmp_path_factory.mktemp("toy"))
    texts = [row.text.lower() for row in tables.rows(folder / "records/passages.parquet", Passage)]
    write_annotator(folder / "annotator", [*texts, "question: where was he born? title: context:"])
    return folder


@pytest.fixture(scope="module")
def reader(toy) -> FusionReader:
    return fid.start(toy / "annotator", FID).eval()


train = partial(reading_toy.train, settings=FID, init="annotator")


@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=9), budget=st.sampled_from([1, 60, 8_192]))
def test_fused_states_equal_a_naive_loop_over_passages(reader, lengths, budget):
    """Whatever shares a pass, every passage has the states that it has alone, in the order given, and nothing else."""
    draw = np.random.default_rng(sum(lengths))
    ids = [draw.integers(3, 390, length).tolist() for length in lengths]
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(fid, "TOKEN_BUDGET", budget)
        inputs = decoder_inputs(reader.states(ids))
        naive = [reader.model.get_encoder()(input_ids=torch.tensor([row])).last_hidden_state[0] for row in ids]
    states = inputs["encoder_outputs"].last_hidden_state
    assert states.shape[:2] == inputs["attention_mask"].shape == (1, sum(lengths))
    assert inputs["attention_mask"].all()
    torch.testing.assert_close(states[0], torch.cat(naive), atol=1e-5, rtol=1e-5)


def test_padded_states_that_are_masked_give_the_same_loss(reader):
    """The loss is that of a decoder which sees all passages padded to the longest, with the padding masked."""
    ids, target = [[5, 6, 7], [8, 9, 10, 11, 12]], [20, 21, 1]
    with torch.no_grad():
        loss = fusion_terms(reader, FusionExample(ids, target), MACHINE)["loss"]
        mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
        rows = torch.tensor([[5, 6, 7, 0, 0], ids[1]])
        states = reader.model.get_encoder()(input_ids=rows, attention_mask=mask).last_hidden_state
        logits = reader.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=states.reshape(1, 10, -1)),
            attention_mask=mask.reshape(1, 10),
            labels=torch.tensor([target]),
        ).logits
    torch.testing.assert_close(loss, cross_entropy(logits[0], torch.tensor(target)))


def test_the_input_of_a_passage_has_its_form_and_is_cut_at_its_end(reader):
    ids = reader.input_ids("Where?", "Alman", "Alman was born in Aron.")
    text = reader.tokenizer.decode(ids, skip_special_tokens=True).strip()
    assert text == "question: where? title: alman context: alman was born in aron."
    long = reader.input_ids("Where?", "Alman", "born " * 99)
    assert (len(long), long[-1]) == (FID.tokens, reader.tokenizer.eos_token_id)


def test_examples_are_the_first_passages_and_an_answer_drawn_per_epoch(toy, reader):
    store = PassageStore(toy / "records/passages.parquet")
    many = QuestionPaths(question("a", ["Aron", "Belm"]), [(0,), (1,), (2,)], frozenset())
    pattern = QuestionPaths(question("b", [r"bo\w+ in"], "regex"), [(1,), (0,)], frozenset())
    empty = QuestionPaths(question("d", []), [(0,)], frozenset())
    unranked = QuestionPaths(question("e", ["x"]), [], frozenset())
    examples = FusionExamples(reader, [many, pattern, empty, unranked], store, toy)
    assert (len(examples), len(examples(0, 0).inputs)) == (1, FID.passages)
    targets = {reader.tokenizer.decode(examples(0, e).target, skip_special_tokens=True).strip() for e in range(9)}
    assert targets == {"aron", "belm"}
    assert examples(0, 4) == examples(0, 4)


def test_greedy_answers_equal_a_naive_loop(toy, reader):
    """Each number of passages by itself, without states that are kept, token by token."""
    store = PassageStore(toy / "records/passages.parquet")
    query = question("q", ["Aron"])
    for prediction in FusionAnswerer(reader, store, READ, MACHINE)(query, [(i,) for i in range(4)]):
        rows = list(range(prediction.top_k))
        titles, texts = store.titles(rows), store.texts(rows)
        ids = [reader.input_ids(query.question, *both) for both in zip(titles, texts, strict=True)]
        written = [0]
        with torch.no_grad():
            states = decoder_inputs(
                [reader.model.get_encoder()(input_ids=torch.tensor([i])).last_hidden_state[0] for i in ids]
            )
            while len(written) <= READ.output_tokens and written[-1] != reader.tokenizer.eos_token_id:
                logits = reader.model(**states, decoder_input_ids=torch.tensor([written])).logits[0, -1]
                written.append(int(logits.argmax()))
        assert prediction.answer == reader.tokenizer.decode(written, skip_special_tokens=True).strip()
    assert FusionAnswerer(reader, store, READ, MACHINE)(query, [])[0] == Prediction("q", 1, "")


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_attention_drops_out_as_asked(toy, rate):
    reader = fid.start(toy / "annotator", FID.model_copy(update={"attention_dropout": rate})).train()
    loop.set_dropout(reader, hidden=0.0, attention=rate)
    with torch.no_grad():
        first, second = (reader.states([[5, 6, 7]])[0] for _ in range(2))
    assert torch.equal(first, second) == (rate == 0.0)


def test_it_learns_to_write_the_planted_answers(toy, tmp_path):
    """Answers of questions that it learnt from; to copy what it never saw is more than a model of this size learns."""
    assert train(toy, tmp_path, steps=80) == 80
    loss = series(tmp_path, "train/loss")
    assert sum(loss[-10:]) < 0.2 * sum(loss[:10])
    store = PassageStore(toy / "records/passages.parquet")
    model = load(tmp_path / "reader").to(device())
    answerer = FusionAnswerer(model, store, READ.model_copy(update={"top_k": [2]}), MACHINE)
    learnt = [i for i in range(len(NAMES)) if i not in EVALUATED]
    questions = [question(f"q{i}", [])._replace(question=f"where was {NAMES[i]} born?") for i in learnt]
    paths = [[(row,) for row in store.rows([f"n{i}", f"p{i}"]).tolist()] for i in learnt]
    answers = [answerer(*pair)[0].answer for pair in zip(questions, paths, strict=True)]
    right = [answer == CITIES[i % len(CITIES)].lower() for answer, i in zip(answers, learnt, strict=True)]
    assert sum(right) >= 12
    paths = toy / "records", toy / "ranking", tmp_path / "reader", tmp_path / "reading"
    assert answer_questions(*paths, settings=READ, hardware=MACHINE) == len(EVALUATED)
    predictions = list(tables.rows(tmp_path / "reading/predictions.parquet", Prediction))
    assert len(predictions) == len(EVALUATED) * len(READ.top_k)
    assert all(row.passage_id is None for row in predictions)


def test_an_annotator_without_a_model(toy, tmp_path):
    write_manifest(tmp_path, Manifest("none", Prompt("{question} {context}", lowercase=True), [], {}))
    with pytest.raises(ValueError, match=r"holds no model .*; set reader\.model to a T5"):
        fid.start(tmp_path, FID)
