"""Published folders: the real libraries score as the pipeline does, by the code of the folder's own card."""

import itertools
import json
import re
import runpy
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import maxsim

import eadpr
from eadpr.library.scorers import make_scorer
from eadpr.publishing import card, folder
from eadpr.runtime.files import write_json
from eadpr.runtime.machine import Machine
from eadpr.search.config import Encode
from eadpr.search.encode import embed, encode
from eadpr.settings.add_collection import SCHEMA
from eadpr.storage import tables
from eadpr.storage.records import Outcome, Passage
from eadpr.training.config import AUTO, ResolvedSettings
from eadpr.training.encoder import TextEncoder, load, load_pretrained, save
from tests import small_collection as small
from tests.repository import ROOT
from tests.test_encoder_settings import PROMPTS
from tests.test_encoder_settings import make as make_base_of
from tests.test_encoder_settings import write_model as write_base

pytestmark = pytest.mark.publishing

QUESTIONS = ["where was ada born", " w1 w2’s w3 ", "capital w5 w6 w7"]
TRAINED = {"encoder": {}, "loss": {"tau1": 1.0}, "train": {"steps": 5}}
REPORT = {
    "report": {
        "resamples": 200, "seed": 0, "confidence": 0.95, "columns": ["top1", "controlled_aa"], "by": {},
        "trainings": {"arm": ["arm"], "dpr": ["dpr"]}, "baseline": "dpr", "compare": {}, "differences": ["top1"],
    },
    "sets": {"evaluate": ["t/dev"]},
}  # fmt: skip
VALUES = {
    "active": {"arm": {"init": "base"}, "later": {"init": "tuned"}, "untrained": {"init": "base"}},
    "bases": {"base": {}}, "query_sides": {"tuned": {"of": "arm"}}, "fused": {"hybrid": {}}, "arms": {"arm2": {}},
}  # fmt: skip


def make(root, *, shared=True, pooling="mean", unit="passage", passages=None):
    """data/<collection> with what publishing an arm reads."""
    small.write_model(root / "random")
    settings = ResolvedSettings(pooling=pooling, shared=shared, unit=unit, question_tokens=16, passage_tokens=24)
    passage = load(root / "random", "passage", settings)
    question = TextEncoder(passage.model, passage.tokenizer, settings)
    return make_of(root, question if shared else load(root / "random", "question", settings), passage, passages)


def make_of(root, question, passage, passages=None):
    data = root / "data" / "toy"
    (data / "models" / "arm").mkdir(parents=True)
    save(data / "models" / "arm", question, passage)
    rows = passages or small.passages()
    tables.write(data / "records" / "passages.parquet", Passage, rows)
    encode(
        data / "records" / "passages.parquet", data / "models" / "arm", data / "vectors" / "arm",
        settings=Encode(**small.ENCODE), hardware=Machine(**small.MACHINE),
    )  # fmt: skip
    values = [("top1", "q1", 1.0), ("top1", "q2", 0.0), ("top1", "q3", 1.0), ("top1", "q4", 1.0)]
    values += [("controlled_aa", "q1", 1.0), ("controlled_aa", "q1", 1.0), ("controlled_aa", "q2", 0.0)]
    outcomes = [Outcome("t/dev", question_id, "who", None, None, name, value) for name, question_id, value in values]
    for row, selected in (("arm", outcomes), ("bm25", outcomes[1:2]), ("dpr", outcomes[2:4])):
        tables.write(data / "outcomes" / f"{row}.parquet", Outcome, selected)
    write_json(data / "training" / "arm" / "metrics.json", {"steps": 5, "kept_step": 0})
    write_json(data / "configs" / "report.json", REPORT)
    write_json(data / "configs" / "arm" / "train.json", TRAINED)
    write_json(data / "configs" / "bases" / "base.json", {"base": {"model": "scratch"}})
    return data


def publish(data, out, *, vectors=False, arm="arm"):
    about = card.describe_arm(VALUES, data, arm, name=out.name, license="other")
    write_card = partial(card.write_card, about, data, vectors=vectors, commit="c0ffee")
    folder.publish(arm, data, out, vectors=vectors, card=write_card)


def texts(data):
    return [(row.title, row.text) for row in tables.rows(data / "records" / "passages.parquet", Passage)]


def run_card(folder, passages, questions=QUESTIONS):
    """Runs the Python blocks of the folder's card with these texts and returns their variables."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL))
    for name, value in (
        ("FOLDER", repr(str(folder))), ("asked", f"[question(text) for text in {questions!r}]"),
        ("passages", f"[passage(*pair) for pair in {passages!r}]"),
    ):  # fmt: skip
        code, count = re.subn(rf"(?m)^{name} = .*$", lambda match, line=f"{name} = {value}": line, code)
        assert count == 1, name
    env = {}
    exec(code, env)
    assert not [name for name, _ in env["model"].named_modules() if name.endswith("pooler")], "reported as missing"
    return env


def vectors_of(model, passages):
    """The pipeline's own vectors of QUESTIONS and of passages, float32."""
    asking, reading = load(model, "question"), load(model, "passage")
    titles, bodies = zip(*passages, strict=True)
    return embed(asking, asking.question_ids(QUESTIONS)), embed(reading, reading.passage_ids(titles, bodies))


def check_scores(env, questions, passages):
    """Every library of the card scores as the pipeline, those that search stored vectors as float16 allows."""
    ours = questions @ passages.T
    beir, rows = env["ForBeir"](), [{"title": title, "text": text} for title, text in env["PASSAGES"]]
    by_library = {"scores": env["scores"], "beir": beir.encode_queries(QUESTIONS) @ beir.encode_corpus(rows).T}
    for name, scores in by_library.items():
        np.testing.assert_allclose(scores, ours, atol=1e-5 * max(1, np.abs(ours).max()), rtol=0, err_msg=name)
    np.testing.assert_allclose(env["of_numpy"], ours, atol=2e-2 * max(1, np.abs(ours).max()), rtol=0)
    assert env["best"][0] == f"p{env['of_numpy'][0].argmax()}"


def test_the_cards_code_scores_as_the_pipeline(tmp_path):
    data = make(tmp_path, shared=False, pooling="cls")
    publish(data, tmp_path / "published", vectors=True)
    env = run_card(tmp_path / "published", texts(data)) | {"PASSAGES": texts(data)}
    check_scores(env, *vectors_of(data / "models" / "arm", texts(data)))


def test_the_card_of_an_arm_of_tokens_and_vector_databases_score_as_the_pipeline(tmp_path, monkeypatch):
    data = make(tmp_path, unit="token")
    arm, out = data / "models" / "arm", tmp_path / "published"
    publish(data, out)
    env = run_card(out, texts(data))
    titles, bodies = zip(*texts(data), strict=True)
    scorers = make_scorer(arm), make_scorer(out)
    ours, again = (np.stack([scorer.score([q] * len(titles), titles, bodies) for q in QUESTIONS]) for scorer in scorers)
    np.testing.assert_allclose([env["scores"], again], [ours] * 2, atol=1e-5, rtol=0)
    assert eadpr.point(out, QUESTIONS[0], bodies) == eadpr.point(arm, QUESTIONS[0], bodies)
    assert load_pretrained(str(out), AUTO, setting="base.model").settings.unit == "passage"
    queries = env["model"].encode_query(env["asked"])
    sums = maxsim(queries, env["model"].encode_document(env["passages"]))  # ColBERT's
    np.testing.assert_allclose(sums, ours * np.array([[len(tokens)] for tokens in queries]), atol=1e-4, rtol=0)
    (tmp_path / "texts").write_text("\n".join(env["passages"]))
    monkeypatch.setattr(sys, "argv", ["search_tokens", str(out), str(tmp_path / "texts"), env["asked"][0]])
    results = runpy.run_path(str(ROOT / "examples" / "search_tokens.py"))
    best = [(row, pytest.approx(ours[0, row], abs=1e-5)) for row in np.argsort(-ours[0], kind="stable")[:3]]
    assert (results["of_qdrant"], results["of_lancedb"]) == (best, best)


@pytest.mark.parametrize(("unit", "shared", "vectors"), [
    ("sentence", True, False), ("token", False, False), ("token", True, True),
])  # fmt: skip
def test_what_no_library_matches_is_refused(tmp_path, unit, shared, vectors):
    data = make(tmp_path, shared=shared, unit=unit)
    with pytest.raises(ValueError, match=rf"{unit} .encoder.unit.*encoder\.shared"):
        publish(data, tmp_path / "published", vectors=vectors)
    assert not (tmp_path / "published").exists()


KINDS = {
    "bert": {"pooling": "cls"},
    "bert with prompts": {"prompts": PROMPTS, "max_seq_length": 24, "do_lower_case": True},
    "bert with layers": {"dense": (12, 8), "prompts": {"document": "passage: "}},
    "bert by dot products": {"normalise": False, "similarity_fn_name": "dot", "prompts": PROMPTS},
    "bert with pairs": {"prompts": PROMPTS},
    "bert without titles": {"pooling": "cls"},
    "xlm-r": {"prompts": PROMPTS, "max_seq_length": 32},
    "qwen3": {"pooling": "lasttoken", "side": "left", "prompts": {"query": "Instruct: find it\nQuery:"}},
}


@pytest.mark.parametrize(("kind", "shared"), zip(KINDS, itertools.cycle([True, False]), strict=False))
def test_a_published_encoder_has_the_vectors_that_it_has_in_the_pipeline(tmp_path, kind, shared):
    """Whatever it says of itself: sentence-transformers, the card's other snippets and `eadpr.awareness` follow."""
    base = make_base_of(tmp_path, write_base(tmp_path / "model", kind.partition(" ")[0], **KINDS[kind]))
    title = {"bert with pairs": "pair", "bert without titles": "none"}.get(kind, "auto")
    settings = AUTO.model_copy(update={"shared": shared, "title": title})
    question, passage = load(base, "question", settings), load(base, "passage", settings)
    if not shared:
        for weight in question.model.parameters():
            weight.data *= 1.1
    data, out = make_of(tmp_path, question, passage), tmp_path / "published"
    publish(data, out, vectors=True)
    ours = vectors_of(data / "models" / "arm", texts(data))
    env = run_card(out, texts(data)) | {"PASSAGES": texts(data)}
    check_scores(env, *ours)
    np.testing.assert_allclose(env["model"].encode_query(env["asked"]), ours[0], atol=1e-5, rtol=0)
    titles, passages = zip(*texts(data)[:3], strict=True)
    scores = make_scorer(out).score(QUESTIONS, titles, passages)
    np.testing.assert_allclose(scores, np.diag(ours[0] @ ours[1][:3].T), atol=1e-4)
    text = (out / "README.md").read_text()
    assert ("which is their cosine" in text) == (question.settings.similarity == "cosine")
    assert ("reports one with random weights" in text) == (kind != "qwen3")
    assert f"multiplied by {question.settings.loss_scale:g} in the loss" in text


def test_two_encoders_are_never_taken_for_one(tmp_path):
    publish(make(tmp_path, shared=False), tmp_path / "published")
    with pytest.raises(ValueError, match="task"):
        SentenceTransformer(str(tmp_path / "published"), device="cpu").encode(["w1"])


@pytest.mark.parametrize(("shared", "where"), [(True, "1_Pooling"), (False, "question_encoder/1_Pooling")])
def test_pooling_is_in_the_form_that_servers_read(tmp_path, shared, where):
    """vLLM and text-embeddings-inference look for true booleans; of `pooling_mode: cls`, which sentence-transformers
    writes since 5.4, vLLM made its own default without a word (vllm#45995)."""
    publish(make(tmp_path, shared=shared, pooling="cls"), tmp_path / "published")
    config = json.loads((tmp_path / "published" / where / "config.json").read_text())
    assert config == {
        "word_embedding_dimension": 16, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False,
    }  # fmt: skip


def test_the_card_says_what_was_measured_and_trained_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = make(tmp_path)
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    write_json(data / "configs" / "bases" / "base.json", {"base": {"model": str(tmp_path / "base")}})
    collections = tmp_path / "data" / "collections"
    collections.mkdir()
    (collections / "toy.yaml").write_text("# Toys. Licences: toys CC BY-NC 4.0; others\n# as for more.\nsource: {}\n")
    (collections / "more.yaml").write_text(f"{SCHEMA}# More toys. Licence: MIT.\nsource: {{}}\n")
    publish(data, tmp_path / "published")
    readme = ModelCard.load(tmp_path / "published" / "README.md")
    assert re.search(r"(?m)^\| top-1 +\| +75\.0 \[.*\| +100\.0 \[.*\| +0\.0 \[", readme.text)
    assert re.search(r"(?m)^\| controlled AA \| +66\.7 \[.*\| +– \| +– \|$", readme.text)
    assert "| dpr, t/dev (2 questions) | bm25, t/dev (1 question) |" in readme.text
    assert "no validation was better than the one before the first step" in readme.text
    assert (readme.data.license, "No licence is chosen" in readme.text) == ("other", True)
    warned, used, trained = (readme.text.index(part) for part in ("**Not for commercial use**", "## Use it", "Toys."))
    assert warned < used < trained
    assert not card.FORBIDS.search("CC BY 4.0, commercial use is allowed")
    assert "Licences: toys CC BY-NC 4.0; " in readme.text
    assert "(licence cc-by-nc-4.0)" in readme.text
    assert "Of more: More toys. Licence: MIT." in readme.text
    assert "commit c0ffee" in readme.text
    assert str(tmp_path) not in readme.text
    report = REPORT["report"] | {"trainings": {row: [row] for row in ("arm", "bm25", "dpr")}}
    for rows, compared in ([], ["dpr", "bm25"]), ("bm25", ["bm25"]), (["bm25", "dpr"], ["bm25", "dpr"]):
        table = card.measure_table(data / "outcomes", "arm", report | {"compare": {"arm": rows}}, ["t/dev"])
        assert re.findall(r"(\w+), t/dev", table) == ["arm", *compared]


def test_what_no_other_library_can_be_given_is_refused(tmp_path):
    data, out = make(tmp_path), tmp_path / "published"
    advices = {"arm2": "active arm; add it to active, or", "base": "arm;", "bm25": "model but a ranking;"}
    for arm, advice in advices.items():
        with pytest.raises(ValueError, match=f"'{arm}' is no {advice} publish one of arm, later, untrained$"):
            publish(data, out, arm=arm)
    with pytest.raises(FileNotFoundError, match=r"models/untrained/encoder\.json does not exist"):
        publish(data, out, arm="untrained")
    (data / "outcomes" / "arm.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"outcomes/arm\.parquet does not exist"):
        publish(data, out)
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []
    out.mkdir()
    (out / "of a killed run").touch()
    with pytest.raises(ValueError, match="exists and is not empty"):
        publish(data, out)


def test_a_tokenizer_without_padding_is_refused(tmp_path):
    data = make(tmp_path)
    for path in (data / "models" / "arm").glob("*/tokenizer_config.json"):
        path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "pad_token"}))
    with pytest.raises(ValueError, match="has no padding token"):
        publish(data, tmp_path / "published")


class Wrapper:
    """MTEB's, as far as ours needs it: MTEB is not among the packages of the tests."""

    def __init__(self, folder, device):
        self.model = SentenceTransformer(folder, device=device)


def test_the_pages_code_finds_the_same_in_vector_databases_and_mteb(tmp_path, monkeypatch):
    kinds = SimpleNamespace(PromptType=SimpleNamespace(document="document"))
    fake = SimpleNamespace(models=SimpleNamespace(SentenceTransformerEncoderWrapper=Wrapper), types=kinds)
    monkeypatch.setitem(sys.modules, "mteb", fake)
    data = make(tmp_path)
    publish(data, tmp_path / "published", vectors=True)
    ours = vectors_of(data / "models" / "arm", texts(data))[0][0]
    scores = np.load(tmp_path / "published" / "vectors" / "vectors.npy").astype(np.float32) @ ours
    expected = [(f"p{row}", pytest.approx(scores[row], abs=1e-5)) for row in np.argsort(-scores, kind="stable")[:10]]
    page = (ROOT / "docs" / "howto" / "publish.md").read_text(encoding="utf-8")
    env = {"FOLDER": tmp_path / "published", "OUT": tmp_path, "question": ours}
    exec("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), env)
    for name in ("of_qdrant", "of_lancedb", "of_milvus"):
        assert env[name] == expected, name
    env |= {"passage": lambda title, text: f"{title}[SEP]{text}" if title else text, "question": str.strip}
    batch = {"title": [title for title, _ in texts(data)], "body": [text for _, text in texts(data)], "text": []}
    vectors = env["encoder"].encode([batch], prompt_type="document"), env["encoder"].encode([{"text": QUESTIONS[:1]}])
    assert vectors[0] @ vectors[1][0] == pytest.approx(scores, abs=1e-2)  # those stored are float16
