"""MDR's published reader: a file of its layout is converted, and read as a computation written out here reads it."""

import itertools
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor
from transformers import ElectraConfig, ElectraModel, PreTrainedTokenizerFast

from eadpr.readers import extractive, kinds
from eadpr.readers.answer import ExtractiveAnswerer
from eadpr.readers.extractive import ExtractiveReader
from eadpr.readers.predictions import Prediction, Sentence
from eadpr.readers.published import convert_reader
from eadpr.runtime import files
from eadpr.runtime.model_folders import model_files
from eadpr.storage import tables
from eadpr.storage.passages import PassageStore
from eadpr.storage.records import Passage, Question, RankedPath, Span
from tests.path_reading_toy import LEARNING, READ, write_all
from tests.reading_toy import MACHINE, train
from tests.small_collection import WORDS, python

pytestmark = pytest.mark.readers

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused1]", "yes", "no", *WORDS]
SETTINGS = LEARNING.model_copy(update={"steps": 0})
LONGEST = READ.path_answer_tokens
Weights = dict[str, Tensor]


def write_architecture(folder: Path, words: list[str]) -> str:
    """An ELECTRA's config and a tokenizer of these words."""
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=backend, **special).save_pretrained(folder)
    ElectraConfig(
        vocab_size=len(words), embedding_size=16, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, initializer_range=0.5,
    ).save_pretrained(folder)  # fmt: skip
    return str(folder)


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    folder = write_all(tmp_path_factory.mktemp("mdr"))
    write_architecture(folder / "electra", VOCABULARY)
    return folder


@pytest.fixture(scope="module")
def store(toy) -> PassageStore:
    return PassageStore(toy / "records/passages.parquet")


@pytest.fixture(scope="module")
def electra(toy) -> ElectraModel:
    torch.manual_seed(2)
    return ElectraModel(ElectraConfig.from_pretrained(toy / "electra")).eval()


def drawn_heads(seed: int) -> Weights:
    draw = torch.Generator().manual_seed(seed)
    shapes = {"pooler.dense": (16, 16), "qa_outputs": (2, 16), "rank": (1, 16), "sp": (1, 16)}
    found = {f"{name}.weight": torch.randn(shape, generator=draw) for name, shape in shapes.items()}
    return found | {f"{name}.bias": torch.randn(shape[0], generator=draw) for name, shape in shapes.items()}


def as_published(electra: ElectraModel, heads: Weights) -> Weights:
    """With the positions that older files have."""
    own = {f"encoder.{key}": value for key, value in electra.state_dict().items()}
    return own | heads | {"encoder.embeddings.position_ids": torch.arange(64)[None]}


def converted(weights: Weights, toy: Path, folder: Path) -> Path:
    torch.save(weights, folder / "qa_electra.pt")
    parameters = convert_reader(folder / "qa_electra.pt", folder / "converted", str(toy / "electra"))
    assert parameters == sum(value.numel() for key, value in weights.items() if "position_ids" not in key)
    return folder / "converted"


def reader_of(folder: Path, toy: Path, **changes) -> ExtractiveReader:
    return extractive.start(toy / "base", SETTINGS.model_copy(update={"model": str(folder), **changes})).eval()


def words_of(question: str, path: list[str], store: PassageStore, tokens: int) -> list[str]:
    """The input, and titles and sentences as the toy has them: every text is two sentences or one, told by the stop."""
    passages = []
    for row in store.rows(path).tolist():
        (title,), (text,), (given,) = store.titles([row]), store.texts([row]), store.sentences([row])
        sentences = [text[start:end].strip() for start, end in given] if given else [text]
        passages.append(" ".join([title, *(f"[unused1] {sentence}" for sentence in sentences)]))
    asked = question.removesuffix("?").split()[: SETTINGS.question_tokens]
    whole = ["[CLS]", *asked, "[SEP]", *f"yes no [SEP] {' [SEP] '.join(passages)}".split()]
    return [*whole[: tokens - 1], "[SEP]"]


def naive(question: Question, paths: list[list[str]], store: PassageStore, tokens: int, electra, heads: Weights):
    """Answer, score, logit of the path and supporting sentences."""
    options = []
    for path in paths:
        words = words_of(question.question, path, store, tokens)
        after = words.index("[SEP]") + 1
        ids = torch.tensor([[VOCABULARY.index(word) for word in words]])
        types = torch.tensor([[int(i >= after) for i in range(len(words))]])
        with torch.no_grad():
            states = electra(input_ids=ids, token_type_ids=types).last_hidden_state[0]
        pooled = torch.tanh(heads["pooler.dense.weight"] @ states[0] + heads["pooler.dense.bias"])
        rank = (heads["rank.weight"] @ pooled + heads["rank.bias"]).item()
        starts, ends = (states @ heads["qa_outputs.weight"].T + heads["qa_outputs.bias"]).T.tolist()
        sentences = (states @ heads["sp.weight"].T + heads["sp.bias"]).flatten().tolist()
        # yes, no, each passage: none of them reaches into another
        borders = [after, after + 1, *(i for i, word in enumerate(words) if word == "[SEP]" and i >= after)]
        part = [sum(i >= border for border in borders) for i in range(len(words))]
        spans = [
            (starts[i] + ends[j], i, j)
            for i, j in itertools.product(range(len(words)), repeat=2)
            if i <= j < i + LONGEST and i >= after and part[i] == part[j] and "[SEP]" not in words[i : j + 1]
        ]
        score, first, last = max(spans)
        answer = " ".join(word for word in words[first : last + 1] if word != "[unused1]")
        support, place, number = [], -1, 0
        for i, word in enumerate(words):
            if word == "[SEP]" and i > after:
                place, number = place + 1, 0
            elif word == "[unused1]":
                if sentences[i] > 0:
                    support.append(Sentence(path[place], number))
                number += 1
        options.append((0.8 * rank + 0.2 * score, answer, rank, support))
    score, answer, rank, support = max(options, key=lambda option: option[0])
    return answer, score, rank, support


def of_kind(row: Prediction) -> str:
    if row.passage_id is None:
        return row.answer
    return "title" if row.start is None else "text"


@pytest.mark.parametrize("tokens", [48, 22])
def test_answers_are_those_of_a_computation_by_hand(toy, store, electra, tmp_path, tokens):
    """22 tokens cut the second passage. Of several readers, so that some answer each of all kinds."""
    questions = {row.id: row for row in tables.rows(toy / "records/questions.parquet", Question)}
    ranked = list(tables.rows(toy / "ranking/paths/train.parquet", RankedPath))
    seen = set()
    for seed in (2, 5, 8, 12):
        heads = drawn_heads(seed)
        (tmp_path / str(seed)).mkdir()
        folder = converted(as_published(electra, heads), toy, tmp_path / str(seed))
        answerer = ExtractiveAnswerer(reader_of(folder, toy, tokens=tokens), store, READ.for_reader(SETTINGS), MACHINE)
        for i, rows in enumerate(zip(*[iter(ranked)] * 3, strict=True)):
            paths = [row.passage_ids for row in rows]
            asked = questions[rows[0].question_id]
            asked = asked._replace(question=f"w{i} {asked.question}?")
            (found,) = answerer(asked, [tuple(store.rows(path).tolist()) for path in paths])
            answer, score, rank, support = naive(asked, paths, store, tokens, electra, heads)
            assert (found.answer, found.support) == (answer, support)
            assert found.answer_score == pytest.approx(score, abs=1e-4)
            assert found.passage_score == pytest.approx(rank, abs=1e-4)
            if found.start is not None:
                text = store.texts(store.rows([found.passage_id]))[0]
                assert text[found.start : found.end] == found.answer
            seen.add(of_kind(found))
    assert seen == {"yes", "no", "title", "text"}


def test_an_input_has_its_words_and_a_mark_before_each_sentence(toy, electra, tmp_path):
    """Of the second passage one sentence is blank, and of the last there is room for the mark alone. The third is
    blank."""
    given = [
        Passage("p", "paris", "ada was born .", None),
        Passage("q", "w3", "w4 w5 . w6 .", [Span(0, 7), Span(7, 7), Span(8, 12)]),
        Passage("r", "", "", None),
    ]
    tables.write(tmp_path / "passages.parquet", Passage, given)
    own = PassageStore(tmp_path / "passages.parquet")
    reader = reader_of(converted(as_published(electra, drawn_heads(1)), toy, tmp_path), toy, tokens=23)
    passages = reader.load_passages(own)
    (one,) = reader.inputs("where was ada?", [(0, 1)], passages)
    words = reader.tokenizer.convert_ids_to_tokens(one.ids)
    assert " ".join(words) == (
        "[CLS] where was ada [SEP] yes no [SEP] paris [unused1] ada was born . [SEP] w3 [unused1] w4 w5 . [unused1]"
        " [unused1] [SEP]"
    )
    assert (one.question_length, [words[i] for i in (one.passage_T == 2).nonzero()[0]]) == (5, ["yes"])
    assert [words[i] for i in (one.passage_T == 3).nonzero()[0]] == ["no"]
    numbers, sentence_T = passages.sentences_in(one, (0, 1))
    assert (numbers, [words[i] for i in (sentence_T >= 0).nonzero()[0]]) == (
        [(0, 0), (1, 0), (1, 1), (1, 2)], ["[unused1]"] * 4,
    )  # fmt: skip
    assert sentence_T[sentence_T >= 0].tolist() == [0, 1, 2, 3]
    for first, last, place, said in ((8, 8, 0, "paris"), (8, 10, 0, "paris ada"), (10, 12, 0, "ada was born")):
        found, span = one.characters(first, last)
        assert (found, passages.piece(place, span)) == (place, said)
    assert one.characters(10, 12)[1] == (0, 12)
    (blank,) = reader.inputs("", [(2,)], passages)
    assert reader.tokenizer.convert_ids_to_tokens(blank.ids) == ["[CLS]", "[SEP]", "yes", "no", "[SEP]", "[SEP]"]
    assert passages.sentences_in(blank, (2,)).numbers == []


def test_a_file_saved_from_several_cards_and_the_stage_that_takes_the_reader_as_it_is(toy, electra, tmp_path):
    weights = as_published(electra, drawn_heads(7))
    folder = converted(weights, toy, tmp_path)
    torch.save({f"module.{key}": value for key, value in weights.items()}, tmp_path / "several.pt")
    command = ("-m", "stages.convert", tmp_path / "several.pt", "--reader", "--out", tmp_path / "several")
    done = python(*command, "--architecture", toy / "electra", cache=tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert files.tree_sha256(tmp_path / "several") == files.tree_sha256(folder)
    train(toy, tmp_path, SETTINGS, given=model_files(str(folder)), model=str(folder))
    again = kinds.load(tmp_path / "reader")
    assert again.marks == reader_of(folder, toy).marks
    assert all(torch.equal(p, q) for p, q in zip(again.parameters(), reader_of(folder, toy).parameters(), strict=True))


@pytest.mark.parametrize(("change", "said"), [
    ({"module.rank.weight": None}, "module.rank.weight is missing, and a reader's is (1, 16)"),
    ({"module.pooler.dense.bias": None}, "module.pooler.dense.bias is missing, and a reader's is (16,)"),
    ({"module.sp.weight": torch.ones(2, 16)}, "module.sp.weight is (2, 16), and a reader's is (1, 16)"),
    ({"module.other.weight": torch.ones(1)}, "unknown weights module.other.weight; is it a reader?"),
    ({"module.encoder.encoder.layer.1.output.dense.bias": None},
     "missing weights module.encoder.encoder.layer.1.output.dense.bias; is it a "),
])  # fmt: skip
def test_other_weights_are_named(toy, electra, tmp_path, change, said):
    weights = {f"module.{key}": value for key, value in as_published(electra, drawn_heads(1)).items()} | change
    torch.save({key: value for key, value in weights.items() if value is not None}, tmp_path / "qa_electra.pt")
    with pytest.raises(ValueError, match=r"qa_electra\.pt: ") as raised:
        convert_reader(tmp_path / "qa_electra.pt", tmp_path / "new", str(toy / "electra"))
    assert said in str(raised.value)
    assert not (tmp_path / "new").exists()


def test_what_it_cannot_be_is_said(toy, electra, tmp_path):
    weights = as_published(electra, drawn_heads(1))
    torch.save(weights, tmp_path / "qa.pt")
    poor = write_architecture(tmp_path / "poor", [word for word in VOCABULARY if word != "[unused1]"])
    with pytest.raises(ValueError, match=r"the tokenizer of .*poor lacks yes, no or \[unused1\]"):
        convert_reader(tmp_path / "qa.pt", tmp_path / "new", poor)
    folder = converted(weights, toy, tmp_path)
    with pytest.raises(ValueError, match=r"is MDR's reader, which is not trained here, but path_reader\.steps is 3"):
        reader_of(folder, toy, steps=3)
    with pytest.raises(ValueError, match=r"holds passages.bias, .*but a reader of kind extractive has passages.bias,"):
        reader_of(folder, toy, kind="extractive")
