"""Answer awareness and its controls: against a loop, by hand, and of an encoder that knows nothing but length."""

import itertools
import random
from types import SimpleNamespace
from typing import Self

import numpy as np
import pyarrow as pa
import pytest
from torch import nn

from eadpr.evaluation.awareness import AWARENESS, CONTROLLED, of_file
from eadpr.evaluation.evaluate import awareness_values
from eadpr.report.tables import share_longer
from eadpr.runtime.section import Sets
from eadpr.search import late
from eadpr.search import probe as probing
from eadpr.search.config import Probe
from eadpr.storage import tables
from eadpr.storage.records import PairScore, Passage, Positive, Question, SetMember, Span
from eadpr.supervision.config import PLACEBOS, Distractors
from eadpr.supervision.distractors import write_distractors
from eadpr.supervision.evidence import find_evidence
from eadpr.supervision.manifest import Manifest, Prompt, write_manifest
from eadpr.training.encoder import Encoders
from tests.supervision_toy import EVIDENCE, HARDWARE

VARIANTS = ("masked", "distractor", *PLACEBOS, "sentence")


def random_scores(seed: int) -> list[PairScore]:
    """Score twenty questions, one or two pairs each; a variant in four is missing, one is beyond the cut; many tie."""
    draw = random.Random(seed)
    rows = []
    for i, passage in itertools.product(range(20), ("p0", "p1")):
        if passage == "p1" and i % 3:
            continue
        rows.append(PairScore(f"q{i}", passage, "positive", draw.randrange(4)))
        for variant in VARIANTS:
            if kind := draw.randrange(4):
                rows.append(PairScore(f"q{i}", passage, variant + "_cut" * (kind == 1), draw.randrange(4)))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_every_measure_equals_a_loop(tmp_path, seed):
    """q0 is not asked for. A pair counts where both texts were scored, and neither is the positive to the encoder."""
    rows = random_scores(seed)
    tables.write(tmp_path / "pairs.parquet", PairScore, rows)
    scores = {(row.question_id, row.passage_id, row.variant): row.score for row in rows}
    pairs = list(dict.fromkeys((row.question_id, row.passage_id) for row in rows if row.question_id != "q0"))
    measures = dict(of_file(tmp_path / "pairs.parquet", pa.array([f"q{i}" for i in range(1, 20)])))
    assert list(measures) == list(AWARENESS)
    for metric, (above, below, *_) in AWARENESS.items():
        counted, cut, without = [], [], []
        for pair in pairs:
            first, second = scores.get((*pair, above)), scores.get((*pair, below))
            if (*pair, f"{below}_cut") in scores or (second is not None and (*pair, f"{above}_cut") in scores):
                cut.append(pair[0])
            elif second is not None and first is None:
                without.append(pair[0])
            elif second is not None:
                counted.append((pair[0], first - second, first))
        measure = measures[metric]
        assert list(zip(measure.question_ids, measure.values, measure.above, strict=True)) == counted, metric
        assert ([*measure.cut], [*measure.without]) == (cut, without), metric
        assert counted or metric in ("aa_pseudo", "aa_gold", "aa_window", "aa_answer")


class Characters:
    """Stands in for an encoder: a token is a character, and `embed` gives the length."""

    token_dim, model = None, nn.Identity()

    def passage_ids(self, titles: list[str], texts: list[str]) -> list[list[int]]:
        return [list(map(ord, text)) for text in texts]

    def question_ids(self, texts: list[str]) -> list[list[int]]:
        return [[1]] * len(texts)

    def to(self, device: object) -> Self:
        return self


COUNT = 300


def write_collection(folder):
    """Questions on passages of five to nine sentences of six to fourteen words of two to nine letters, which none else
    has; the answer is two words within one of them, the evidence."""
    draw = random.Random(0)
    passages, questions, members, positives = [], [], [], []
    for i in range(COUNT):
        cut = []
        for _ in range(draw.randint(5, 9)):
            words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(draw.randint(6, 14))]
            cut.append(words)
        evidence = draw.choice(cut)
        place = draw.randrange(len(evidence) - 1)
        answer = " ".join(evidence[place : place + 2])
        written = [" ".join(words).capitalize() + "." for words in cut]
        text = " ".join(written)
        start = text.index(written[cut.index(evidence)])
        passages.append(Passage(f"p{i}", "", text, None))
        questions.append(Question(f"q{i}", f"Which {i}?", [answer], "string", None, None, None, None))
        members.append(SetMember("toy", "dev", f"q{i}"))
        positives.append(Positive(f"q{i}", f"p{i}", "given", [Span(start, start + 1)]))
    tables.write(folder / "passages.parquet", Passage, passages)
    tables.write(folder / "questions.parquet", Question, questions)
    tables.write(folder / "question_sets.parquet", SetMember, members)
    tables.write(folder / "positives.parquet", Positive, positives)


def test_an_encoder_of_length_alone_is_aware_of_all_and_under_control_of_half(tmp_path, monkeypatch):
    """Run the pipeline's own stages: a cut text is shorter, whatever was cut; of two that were cut alike either may
    be. Ties, which count against, are one in ten of two words, fewer of sentences."""
    write_collection(tmp_path)
    write_manifest(tmp_path / "annotator", Manifest("none", Prompt("", lowercase=True), [], {}))
    sets = Sets(train=[], evaluate=["toy/dev"], annotator=[])
    settings = EVIDENCE.model_copy(update={"strategies": ["gold", *PLACEBOS], "placebo_of": "gold"})
    places = {"records": tmp_path, "positives": tmp_path}
    evidence = tmp_path / "evidence.parquet"
    find_evidence(settings, sets, HARDWARE, annotator_folder=tmp_path / "annotator", out=evidence, **places)
    write_distractors(Distractors(forms=["cut"], seed=0), evidence=evidence, out=tmp_path / "distractors", **places)
    monkeypatch.setattr(probing, "load_pair", lambda _: Encoders(Characters(), Characters()))
    monkeypatch.setattr(late, "embed", lambda _, ids, **__: np.array([[len(tokens)] for tokens in ids], np.float32))
    inputs = (tmp_path, tmp_path / "positives.parquet", tmp_path / "distractors" / "distractors.parquet", tmp_path)
    probe = Probe(annotated=False, strategy="gold", also=[], placebos=list(PLACEBOS))
    assert probing.probe(*inputs, tmp_path / "pairs.parquet", settings=probe, sets=sets, hardware=HARDWARE) == COUNT
    measures = awareness_values(tmp_path / "pairs.parquet", pa.array([f"q{i}" for i in range(COUNT)]))
    for metric in ("aa", "aa_evidence", "placebo", "placebo_words", "placebo_inside"):
        assert measures[metric].values.mean() == 1.0, metric
    for metric in CONTROLLED:
        assert measures[metric].values.mean() == pytest.approx(0.5, abs=0.1), metric
        assert len(measures[metric].values) > 0.95 * COUNT, metric
    settings = SimpleNamespace(strategy="gold", annotated=False)
    alone = share_longer(*inputs[:3], "toy/dev", settings, list(AWARENESS))
    expected = {metric: pytest.approx(measures[metric].values.mean()) for metric in CONTROLLED if metric in measures}
    assert alone == expected
    assert share_longer(*inputs[:3], "toy/dev", settings, ["aa", "top1"]) == {}
    rows = list(tables.rows(tmp_path / "positives.parquet", Positive))
    annotated = [row._replace(gold=row.gold if row.question_id == "q0" else None) for row in rows]
    tables.write(tmp_path / "positives.parquet", Positive, annotated)
    settings.annotated = True
    shares = share_longer(*inputs[:3], "toy/dev", settings, ["controlled_aa"])
    assert shares == {"controlled_aa": measures["controlled_aa"].values[0]}, "of the pair that is probed"
    assert AWARENESS["aa_sentence"].formula == AWARENESS["aa_evidence"].formula == "s(q, p⁺) > s(q, p*)"
