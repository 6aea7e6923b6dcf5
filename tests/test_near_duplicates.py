"""Near-duplicates: what each generator makes, what is dropped, and that a killed run goes on where it was."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler
from itertools import combinations, permutations
from pathlib import Path
from types import SimpleNamespace

import pytest

from eadpr import cache, files, params, tables
from eadpr.config import Sets
from eadpr.corpus.given import GivenContext
from eadpr.corpus.prepare import prepare
from eadpr.corpus.qa_files import ramdocs
from eadpr.corpus.sources import File, Prepare, Source
from eadpr.model_folders import NO_FILES, model_files
from eadpr.near_duplicates import generate
from eadpr.near_duplicates.config import Endpoint, Generation, Given, Seq2Seq, filled
from eadpr.near_duplicates.endpoint import AT_ONCE, TRIES, endpoint
from eadpr.near_duplicates.generate import NearDuplicateInputs
from eadpr.near_duplicates.generators import Candidate, Original, given, original
from eadpr.near_duplicates.kinds import removed, reordered, replaced, swapped
from eadpr.records import Distractor, Fold, NearDuplicate, Passage, Positive, Question, Span
from eadpr.supervision.draws import from_drawn
from eadpr.supervision.fillers import Fillers
from eadpr.supervision.pairs import Pair
from eadpr.text import has_answer
from tests import small_collection
from tests.loopback import serving
from tests.repository import ROOT
from tests.supervision_toy import HARDWARE, RECIPE
from tests.toy_records import question, write_records

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
TEXT = "Ada was born in London. She liked tea. The tea was green. Nobody knows why."
ADA = Original(question("q", ["London"]), Passage("p", "Ada", TEXT, None), [Span(0, 23)], TEXT[24:])
PROMPT = "{question} | {title} | {text}"


def settings(generator="removed", **changes) -> Generation:
    own = {"per_question": 3, "candidates": 6, "strategy": "pseudo", "seed": 0, "replaced": None}
    return Generation(**own | {"seq2seq": None, "endpoint": None, "given": None, "generator": generator} | changes)


def texts(make, one=ADA, numbers=range(8)) -> list[str]:
    return [candidate.text for candidate in make(one, numbers)]


# What there is to start from


def test_the_evidence_and_sentences_that_hold_an_answer_are_taken_out_of_the_positive():
    """What is left of a sentence is looked at: without the words around London it holds none."""
    pair = Pair(question("q", ["London", "green"]), Passage("p", "Ada", TEXT, None), None)
    assert original(pair, None) == (*pair[:2], [Span(0, 23), Span(39, 57)], "She liked tea. Nobody knows why.")
    assert original(pair, [Span(0, 23), Span(24, 38)]).text == "Nobody knows why."
    assert original(pair, [Span(8, 23)]).text == "Ada was She liked tea. Nobody knows why."
    assert original(pair, [Span(0, 38), Span(58, 75)]).text == ""


def test_a_positive_of_which_nothing_tells_the_evidence_is_not_used():
    pair = Pair(question("q", ["Paris"]), Passage("p", "Ada", TEXT, None), None)
    assert original(pair, None)[2:] == ([], "")
    assert original(pair, [Span(0, 23)]).text == "She liked tea. The tea was green. Nobody knows why."


def test_a_field_without_a_value_and_what_a_value_holds_stay():
    assert filled("{a} {b} {c}", a="{b}", b="1") == "{b} 1 {c}"


# By rule

LEFT = ["She liked tea.", "The tea was green.", "Nobody knows why."]


def test_removed_is_the_distractor_and_then_lacks_ever_more_sentences():
    """Each choice of the three once: all, pairs, single ones; in the order of the passage."""
    made = texts(removed(0))
    assert made[0] == ADA.text == " ".join(LEFT)
    pairs, single = ({" ".join(chosen) for chosen in combinations(LEFT, count)} for count in (2, 1))
    assert (set(made[1:4]), set(made[4:]), len(made)) == (pairs, single, 7)


def test_reordered_is_every_other_order_of_the_sentences_that_are_left():
    made = texts(reordered(0))
    assert len(made) == 5
    assert {*made, ADA.text} == {" ".join(order) for order in permutations(LEFT)}
    assert texts(reordered(0), ADA._replace(text="She liked tea.")) == []


@pytest.mark.parametrize("kind", [removed, reordered])
def test_a_rule_draws_by_seed_and_question_alone(kind):
    make = kind(0)
    assert texts(make, numbers=range(2, 4)) == texts(make)[2:4]
    assert any(texts(make) != texts(kind(seed)) for seed in range(1, 9))
    others = (ADA._replace(question=question(f"other{i}", ["London"])) for i in range(9))
    assert any(texts(make) != texts(make, other) for other in others)
    assert texts(make, ADA._replace(text="")) == []


def test_replaced_has_sentences_from_elsewhere_in_the_place_of_the_evidence():
    """Each gap another one, none that the passage has."""
    both = original(Pair(question("q", ["London", "green"]), Passage("p", "Ada", TEXT, None), None), None)
    found = ["Rain fell all day long.", "Snow fell all night.", "Hail fell at noon.", "She liked tea."]
    make = replaced(Fillers(0, lambda pair, length, drawn: from_drawn(found, drawn)))
    assert set(texts(make, both, range(40))) == {
        f"{first} She liked tea. {second} Nobody knows why." for first, second in permutations(found[:3], 2)
    }
    assert texts(make, both, range(5, 7)) == texts(make, both)[5:7]
    assert texts(make, ADA._replace(taken=[], text="")) == []
    assert texts(replaced(Fillers(0, lambda *_: []))) == []


def test_swapped_states_another_answer_wherever_its_own_stood():
    others = ["Rome", "Oslo"]
    make = swapped(SimpleNamespace(answer=lambda pair, number: others[number] if number < 2 else None))
    twice = ADA._replace(positive=Passage("p", "Ada", "Ada, of London, was born in London. She liked tea.", None))
    assert texts(make, twice) == [f"Ada, of {other}, was born in {other}. She liked tea." for other in others]
    assert texts(make, ADA._replace(positive=Passage("p", "Ada", "She liked tea.", None))) == []


# What is kept


class Asked:
    """A generator that gives these texts, and remembers the numbers it was asked for."""

    def __init__(self, *found: str) -> None:
        self.found, self.numbers = found, []

    def __call__(self, one: Original, numbers: range) -> list[Candidate]:
        self.numbers.append((numbers.start, numbers.stop))
        return [Candidate("T", self.found[number]) for number in numbers if number < len(self.found)]


def test_what_is_dropped_is_counted_and_asked_for_again():
    make = Asked("One.", " - ", "In  London!", "One. ", "Two.", "Three.", "Four.")
    dropped: Counter[str] = Counter()
    found = generate.near_duplicates(ADA, settings(), make, dropped)
    assert found == [
        NearDuplicate("q", "p", number, "removed", "T", text) for number, text in enumerate(["One.", "Two.", "Three."])
    ]
    assert dropped == {"empty": 1, "holds_answer": 1, "repeated": 1}
    assert make.numbers == [(0, 3), (3, 5), (5, 6)]


def test_no_more_is_asked_than_the_candidates_or_than_there_are():
    make = Asked(TEXT, TEXT.replace(" ", "\n"), "One.", "London", "London", "London", "Two.")
    dropped: Counter[str] = Counter()
    assert len(generate.near_duplicates(ADA, settings(), make, dropped)) == 1
    assert dropped == {"positive": 2, "holds_answer": 3}
    few = Asked("One.")
    assert len(generate.near_duplicates(ADA, settings(), few, dropped)) == 1
    assert few.numbers == [(0, 3)]


# The stage

PEOPLE = ("Ada", "Bob", "Cem")


def write_people(folder: Path) -> NearDuplicateInputs:
    """q0 to q2 are evaluated with a positive, q3 has no answers, q4 no positive; q1 and q2 share a positive."""
    passages = [
        (f"p{i}", name, f"{name} was born in Town{i}. {name} saw Hill. A river ran.") for i, name in enumerate(PEOPLE)
    ]
    passages.append(("copy", "Other", "Ada saw Hill. A  river ran."))
    asked = [question(f"q{i}", [f"Town{min(i, 1)}"])._replace(relation="birth") for i in range(3)]
    asked += [question("q3", []), question("q4", ["x"])]
    write_records(
        folder / "records",
        passages=passages,
        questions=[*asked, question("t", ["Town2"])],
        sets={"toy/dev": [q.id for q in asked], "toy/train": ["t"]},
    )
    pairs = [("q0", "p0"), ("q0", "p1"), ("q1", "p1"), ("q2", "p1"), ("q3", "p2"), ("t", "p2")]
    tables.write(
        folder / "positives" / "positives.parquet", Positive, (Positive(*pair, "given", None) for pair in pairs)
    )
    rows = [
        Distractor("q0", "p0", "pseudo", 0, "cut", "Ada saw Hill. A river ran.", [Span(0, 22)]),
        Distractor("q0", "p0", "pseudo", 0, "swapped", "Ada was born in x. Ada saw Hill. A river ran.", [Span(16, 21)]),
    ]
    tables.write(folder / "distractors" / "distractors.parquet", Distractor, rows)
    tables.write(folder / "positives" / "folds.parquet", Fold, [Fold("t", "train", 0)])
    (folder / "raw").mkdir()
    return NearDuplicateInputs(*(folder / name for name in NearDuplicateInputs._fields))


SETS = Sets(train=["toy/train"], evaluate=["toy/dev"], annotator=[])
NOTHING = Source(format="atlas")


def write(inputs: NearDuplicateInputs, out: Path, chosen: Generation, source: Source = NOTHING):
    report = generate.write_near_duplicates(
        chosen, source, SETS, HARDWARE, model_files=NO_FILES, inputs=inputs, out=out
    )
    return list(tables.rows(out / "near_duplicates.parquet", NearDuplicate)), report


def test_the_stage_compares_with_the_corpus_and_between_questions(tmp_path, monkeypatch):
    inputs = write_people(tmp_path)
    of_question = {
        "q0": ["Ada saw Hill. A river ran.", "B.", "C."],
        "q1": ["D.", "E."],
        "q2": ["E. ", "F.", "B."],
    }
    seen = []

    def make(one, numbers):
        seen.append((one.question.id, one.positive.id, one.text))
        return [Candidate("", text) for text in of_question[one.question.id][numbers.start : numbers.stop]]

    monkeypatch.setattr(generate, "generator", lambda *_: nullcontext(make))
    rows, report = write(inputs, tmp_path / "out", settings(per_question=2))
    assert [(row.question_id, row.passage_id, row.number, row.text) for row in rows] == [
        ("q0", "p0", 0, "B."),
        ("q1", "p1", 0, "D."),
        ("q1", "p1", 1, "E."),
        ("q2", "p1", 0, "F."),
    ]
    assert report == {
        "generator": "removed",
        "questions": 5,
        "with_all": 1,
        "with_none": 2,
        "near_duplicates": 4,
        "dropped": {"corpus": 1, "shared": 1},
    }
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report
    assert {i: (p, text) for i, p, text in seen} == {
        "q0": ("p0", "Ada saw Hill. A river ran."),
        "q1": ("p1", "Bob saw Hill. A river ran."),
        "q2": ("p1", "Bob saw Hill. A river ran."),
    }


OF_ADA = {
    "removed": {"Ada saw Hill.", "A river ran."},
    "replaced": {f"{name} was born in Town{i}. Ada saw Hill. A river ran." for i, name in enumerate(PEOPLE) if i},
    "reordered": {"A river ran. Ada saw Hill."},
    "swapped": {"Ada was born in Town1. Ada saw Hill. A river ran."},
}


@pytest.mark.parametrize("kind", OF_ADA)
def test_the_kinds_of_a_positive(tmp_path, kind):
    """Fillers and answers come from Bob and Cem; the corpus has Ada's passage without its evidence, as `removed` makes
    it first. No kind leaves an answer."""
    own = settings(kind, per_question=40, candidates=40, replaced={"fillers": "random"})
    rows, report = write(write_people(tmp_path), tmp_path / "out", own)
    assert {row.text for row in rows if row.question_id == "q0"} >= OF_ADA[kind]
    assert not any(has_answer(["Town0" if row.question_id == "q0" else "Town1"], row.text) for row in rows)
    assert {row.generator for row in rows} == {report["generator"]} == {kind}


def test_a_question_whose_answer_no_text_can_hold_has_none(tmp_path):
    """Whether a near-duplicate says yes could not be told, even where there is a distractor."""
    inputs = write_people(tmp_path)
    lacking = Distractor("q1", "p1", "pseudo", 0, "cut", "Bob saw Hill. A river ran.", [Span(0, 22)])
    tables.write(inputs.distractors / "distractors.parquet", Distractor, [lacking])
    path = inputs.records / "questions.parquet"
    asked = [row._replace(answer_kind="yes-no") if row.id == "q1" else row for row in tables.rows(path, Question)]
    tables.write(path, Question, asked)
    rows, report = write(inputs, tmp_path / "out", settings())
    assert {row.question_id for row in rows} == {"q0", "q2"}
    assert report["with_none"] == 3


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path, monkeypatch):
    inputs = write_people(tmp_path)
    monkeypatch.setattr(generate, "SHARD", 1)
    rows, _ = write(inputs, tmp_path / "whole", settings(per_question=5))
    assert {row.question_id for row in rows} == {"q0", "q1"}  # those of q2 are all q1's too
    assert not any(has_answer(["Town0", "Town1"], row.text) for row in rows)
    made, asked = removed(0), []

    def killed_at(question_id):
        def make(one, numbers):
            if one.question.id == question_id:
                raise KeyboardInterrupt
            asked.append(one.question.id)
            return made(one, numbers)

        return lambda *_: nullcontext(make)

    monkeypatch.setattr(generate, "generator", killed_at("q2"))
    with pytest.raises(KeyboardInterrupt):
        write(inputs, tmp_path / "again", settings(per_question=5))
    assert not (tmp_path / "again").exists()
    asked.clear()
    monkeypatch.setattr(generate, "generator", killed_at(None))
    write(inputs, tmp_path / "again", settings(per_question=5))
    assert set(asked) == {"q2"}
    assert files.tree_sha256(tmp_path / "again") == files.tree_sha256(tmp_path / "whole")


def test_the_stage_runs_as_a_command_with_what_configs_writes(tmp_path):
    values = params.load(ROOT / "params.yaml")
    values["robustness"] |= {"generators": ["removed"], "arms": ["dpr"]}
    sections = params.configs(values)["near_duplicates/removed.json"] | {"sets": SETS.model_dump()}
    inputs = write_people(tmp_path)
    folders = {f"--{name}": folder for name, folder in inputs._asdict().items()}
    options = {"--config": small_collection.write_config(tmp_path / "removed.json", **sections), **folders}
    out = tmp_path / "near_duplicates" / "removed"
    done = small_collection.stages(("near_duplicates", options | {"--out": out}, tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    rows = list(tables.rows(out / "near_duplicates.parquet", NearDuplicate))
    assert f"{len(rows)} near-duplicates of 5 questions" in done.stdout
    assert {row.question_id for row in rows} == {"q0", "q1"}


# endpoint


class Server:
    """Answers with `states` first, then with a text that names the seed; `answer` replaces the whole body."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        self.states: list[tuple[int, dict[str, str], str]] = []
        self.answer: str | None = None
        self.lock = threading.Lock()

    def reply(self, to: BaseHTTPRequestHandler) -> None:
        assert to.path == "/v1/chat/completions"
        body = json.loads(to.rfile.read(int(to.headers["Content-Length"])))
        said = json.dumps({"choices": [{"message": {"role": "assistant", "content": f" Answer to {body['seed']}. "}}]})
        with self.lock:
            self.asked.append(body)
            self.keys.append(to.headers.get("Authorization"))
            status, headers, said = self.states.pop(0) if self.states else (200, {}, self.answer or said)
        to.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(said.encode()))}.items():
            to.send_header(name, value)
        to.end_headers()
        to.wfile.write(said.encode())


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    found = Server()
    with serving(do_POST=found.reply) as http:
        found.url = f"http://127.0.0.1:{http.server_port}/v1"
        yield found


def endpoint_settings(server: Server, **changes) -> Endpoint:
    own = {"url": server.url, "model": "m", "key_variable": "MY_KEY", "prompt": PROMPT, "temperature": 0.5}
    return Endpoint(**own | {"top_p": 0.95, "max_tokens": 7} | changes)


def test_an_endpoint_is_asked_once_per_number_and_never_again(server, monkeypatch):
    make = endpoint(endpoint_settings(server), 0)
    found = make(ADA, range(AT_ONCE + 2))
    assert len({candidate.text for candidate in found}) == AT_ONCE + 2
    assert all(candidate.title == "Ada" and candidate.text == candidate.text.strip() for candidate in found)
    first = server.asked[0]
    assert first["messages"] == [{"role": "user", "content": f"q? | Ada | {ADA.text}"}]
    assert {k: first[k] for k in ("model", "temperature", "top_p", "max_tokens")} == {
        "model": "m", "temperature": 0.5, "top_p": 0.95, "max_tokens": 7
    }  # fmt: skip
    assert set(server.keys) == {"Bearer sk-secret"}
    count = len(server.asked)
    monkeypatch.delenv("MY_KEY")
    assert endpoint(endpoint_settings(server), 0)(ADA, range(AT_ONCE + 2)) == found
    monkeypatch.setenv("MY_KEY", "sk-secret")
    assert make(ADA._replace(text=""), range(2)) == []
    assert len(server.asked) == count == AT_ONCE + 2
    for changes in ({"model": "n"}, {"prompt": "{text}"}, {"temperature": 0.6}):
        endpoint(endpoint_settings(server, **changes), 0)(ADA, range(1))
    endpoint(endpoint_settings(server), 1)(ADA, range(1))
    assert len(server.asked) == count + 4


def test_the_key_is_written_nowhere(server):
    server.states = [(401, {}, "Incorrect key: sk-secret")]
    with pytest.raises(OSError, match=r"HTTP 401 .*Incorrect key: <key>") as error:
        endpoint(endpoint_settings(server), 0)(ADA, range(1))
    assert "sk-secret" not in str(error.value)
    endpoint(endpoint_settings(server), 0)(ADA, range(2))
    server.answer = '{"choices": [{"message": {"content": "Your key is sk-secret."}}]}'
    assert texts(endpoint(endpoint_settings(server), 0), numbers=range(2, 3)) == ["Your key is <key>."]
    kept = [path.read_text() for path in cache.root().rglob("*") if path.is_file()]
    assert len(kept) == 3
    assert not any("sk-secret" in text for text in kept)


def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret\r\n")
    endpoint(endpoint_settings(server), 0)(ADA, range(1))
    assert server.keys == ["Bearer sk-secret"]
    for key in ("sk-secret\nsk-other", "sk-secret…"):
        monkeypatch.setenv("MY_KEY", key)
        with pytest.raises(ValueError, match="environment variable MY_KEY holds a line break or another") as error:
            endpoint(endpoint_settings(server), 0)(ADA, range(1, 2))
        assert "sk-" not in str(error.value)


def test_the_key_follows_no_redirect(server):
    server.states = [(307, {"Location": f"{server.url}/chat/completions"}, "")]
    with pytest.raises(OSError, match="HTTP 307"):
        endpoint(endpoint_settings(server), 0)(ADA, range(1))
    assert len(server.asked) == 1


def test_a_failure_that_passes_is_tried_again_with_growing_pauses(server):
    slept: list[float] = []
    server.states = [(500, {}, ""), (429, {"Retry-After": "7"}, ""), (524, {"Retry-After": "later"}, "")]
    server.states.append((429, {"Retry-After": "3600"}, ""))
    assert len(endpoint(endpoint_settings(server), 0, sleep=slept.append)(ADA, range(1))) == 1
    assert slept == [1.0, 7.0, 4.0, 120.0]
    server.states = [(429, {}, "no quota left for sk-secret")] * TRIES
    said = f"gave no answer in {TRIES} tries .HTTP 429: 'no quota left for <key>'.*answers so far are kept"
    with pytest.raises(OSError, match=said):
        endpoint(endpoint_settings(server), 0, sleep=slept.append)(ADA, range(1, 2))


def test_a_server_that_is_not_there_and_one_that_wants_no_key(server, monkeypatch, tmp_path):
    monkeypatch.delenv("MY_KEY")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(netrc))
    with pytest.raises(ValueError, match="environment variable MY_KEY is not set"):
        endpoint(endpoint_settings(server), 0)(ADA, range(1))
    endpoint(endpoint_settings(server, key_variable=None), 0)(ADA, range(1))
    assert server.keys == [None]
    gone = endpoint_settings(server, key_variable=None, url="http://127.0.0.1:9/v1")
    with pytest.raises(OSError, match=r"127\.0\.0\.1:9/v1/chat/completions gave no answer"):
        endpoint(gone, 0, sleep=lambda _: None)(ADA, range(1))


BROKEN = ["no json", "[]", '{"choices": []}', '{"choices": [{"message": {"content": 1}}]}']


@pytest.mark.parametrize("answer", BROKEN)
def test_an_answer_that_makes_no_sense_is_asked_for_again_and_then_refused(server, answer):
    server.states = [(200, {}, answer)]
    assert texts(endpoint(endpoint_settings(server), 0, sleep=lambda _: None), numbers=range(1))[0].startswith("Answer")
    server.answer = answer
    with pytest.raises(OSError, match=rf"in {TRIES} tries .an answer without choices\[0\]\.message\.content: '"):
        endpoint(endpoint_settings(server), 0, sleep=lambda _: None)(ADA, range(1, 2))


def test_a_refusal_is_an_empty_candidate_and_half_a_character_is_none(server):
    server.states = [(200, {}, '{"choices": [{"message": {"content": null, "refusal": "No."}}]}')]
    assert texts(endpoint(endpoint_settings(server), 0), numbers=range(1)) == [""]
    server.states = [(200, {}, r'{"choices": [{"message": {"content": "Tea \ud83c"}}]}')]
    assert texts(endpoint(endpoint_settings(server), 0), numbers=range(1, 2)) == ["Tea ?"]


# seq2seq


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    import torch

    from eadpr.supervision import qa_model, small_t5
    from eadpr.supervision.config import Recipe

    recipe = Recipe(**RECIPE)
    tokenizer = small_t5.train_tokenizer([TEXT] * 4, vocabulary=recipe.vocabulary)
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("t5")
    qa_model.save(folder, small_t5.new_model(recipe, vocabulary=len(tokenizer)), tokenizer)
    return folder


def seq2seq_settings(model, **changes) -> Seq2Seq:
    own = {"model": str(model), "revision": None, "prompt": PROMPT, "input_tokens": 64, "output_tokens": 12}
    return Seq2Seq(**own | {"temperature": 1.0, "top_p": 0.95} | changes)


def test_samples_depend_on_seed_question_and_numbers_alone(t5):
    from eadpr.near_duplicates.seq2seq import seq2seq

    def make(seed):
        return seq2seq(seq2seq_settings(t5), seed, hardware=HARDWARE, files=model_files(str(t5)))

    first = make(0)
    other = ADA._replace(question=Question("r", "why?", ["x"], "string", None, None, None, None))
    found = first(ADA, range(4))
    assert len(found) == 4
    assert len({candidate.text for candidate in found}) > 1
    first(other, range(4))
    assert first(ADA, range(4)) == found == make(0)(ADA, range(4))
    assert make(1)(ADA, range(4)) != found
    assert first(ADA, range(4, 8)) != found
    assert first(ADA._replace(text=""), range(4)) == []


@pytest.mark.parametrize("changes", [{"top_p": 1e-6}, {"temperature": 1e-3}])
def test_a_low_temperature_or_top_p_leaves_the_likeliest_tokens(t5, changes):
    from eadpr.near_duplicates.seq2seq import seq2seq

    own = seq2seq_settings(t5, **changes)
    made = [seq2seq(own, seed, hardware=HARDWARE, files=model_files(str(t5)))(ADA, range(4)) for seed in (0, 1)]
    assert made[0] == made[1] == made[0][:1] * 4


def test_another_folder_than_the_checked_one_and_no_model_are_refused(t5, tmp_path):
    from eadpr.near_duplicates.seq2seq import seq2seq

    with pytest.raises(ValueError, match=r"config\.json.* changed, came or went"):
        seq2seq(seq2seq_settings(t5), 0, hardware=HARDWARE, files=NO_FILES)
    with pytest.raises(ValueError, match=r"near_duplicates\.seq2seq\.model .* is not a sequence-to-sequence model"):
        seq2seq(seq2seq_settings(tmp_path), 0, hardware=HARDWARE, files=NO_FILES)


# given


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


OWN = File(kind="near_duplicates", path="own.jsonl")
RAMDOCS = {
    "question": "q?",
    "gold_answers": ["London"],
    "documents": [
        {"text": "She is of London.", "type": "correct"},
        {"text": "She is of Paris.", "type": "misinfo"},
        {"text": "She is of London.", "type": "noise"},
        {"text": "Noise.", "type": "noise"},
    ],
}


def test_given_ones_are_found_by_id_or_question(tmp_path):
    path = lines(
        tmp_path / "own.jsonl",
        {"question_id": "q", "text": "One.", "title": "T"},
        {"question": "q?", "text": "Two.", "type": "noise"},
        {"question": "q?", "text": "Three.", "type": "other"},
        {"question_id": "q?", "text": "Four."},
        {"question_id": "q", "text": "Five.", "title": ""},
    )
    make = given(Given(types=["noise", "near_duplicate"]), [(OWN, path)])
    assert make(ADA, range(9)) == [Candidate("T", "One."), Candidate("", "Five."), Candidate("Ada", "Two.")]
    assert make(ADA, range(1, 2)) == [Candidate("", "Five.")]


def test_documents_of_ramdocs_that_are_not_correct_are_given(tmp_path):
    path = lines(tmp_path / "r.jsonl", RAMDOCS)
    file = File(kind="ramdocs", path="r.jsonl", set="ramdocs", split="test")
    assert texts(given(Given(types=["misinfo", "noise"]), [(file, path)])) == ["She is of Paris.", "Noise."]
    assert texts(given(Given(types=["misinfo"]), [(file, path)])) == ["She is of Paris."]
    correct_last = RAMDOCS | {"documents": [RAMDOCS["documents"][3], RAMDOCS["documents"][0]]}
    (asked,) = ramdocs(lines(tmp_path / "r.jsonl", correct_last))
    assert asked.contexts[0] == GivenContext("positive", 0, None, "", "She is of London.")


def test_look_alikes_that_are_not_there_or_of_another_type_are_told(tmp_path):
    with pytest.raises(ValueError, match="has no file of kind near_duplicates or ramdocs"):
        given(Given(types=["noise"]), [])
    path = lines(tmp_path / "own.jsonl", {"question": "q", "text": "x", "type": "y"})
    with pytest.raises(ValueError, match=r"own\.jsonl: no near-duplicate is of a type in .*there are y"):
        given(Given(types=["noise"]), [(OWN, path)])


JOINING = Prepare(split_words=None, add_context_passages=True, drop_empty_answers=False, strip_quotes=False)


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "ramdocs").exists(), reason="needs the shared collection ramdocs")
def test_ramdocs_as_a_collection_and_its_look_alikes(tmp_path):
    """1,918 correct documents, 541 noise, 307 misinfo; some stand twice."""
    from eadpr.records import Context

    sources = SHARED / "ramdocs"
    file = {"kind": "ramdocs", "path": "RAMDocs_test.jsonl.gz", "set": "ramdocs", "split": "test", "rows": 500}
    source = Source.model_validate({"format": "dpr", "files": [file]})
    report = prepare(source, JOINING, sources=sources, raw=tmp_path, out=tmp_path / "records")
    counts = report["sets"]["ramdocs/test"]
    assert counts["questions"] == 500
    assert counts["without_positive"] == 3
    contexts = tables.rows(tmp_path / "records" / "contexts.parquet", Context)
    rows = (Positive(c.question_id, c.passage_id, "given", None) for c in contexts)
    tables.write(tmp_path / "positives" / "positives.parquet", Positive, rows)
    tables.write(tmp_path / "distractors" / "distractors.parquet", Distractor, [])
    inputs = NearDuplicateInputs(*(tmp_path / name for name in NearDuplicateInputs._fields))._replace(sources=sources)
    chosen = settings("given", per_question=20, candidates=20, given=Given(types=["misinfo", "noise"]))
    sets = Sets(train=[], evaluate=["ramdocs/test"], annotator=[])
    found = generate.write_near_duplicates(
        chosen, source, sets, HARDWARE, model_files=NO_FILES, inputs=inputs, out=tmp_path / "out"
    )
    assert found["near_duplicates"] + sum(found["dropped"].values()) <= 541 + 307
    assert found["near_duplicates"] > 600
    assert found["with_none"] < 100
