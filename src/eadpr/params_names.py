"""What the names in stages' signatures stand for: the class of each section, and what each path is.

One name means the same in every stage. The module must stay light, because `--help` imports it.
"""

from __future__ import annotations

# The shared sections of params.yaml; `path_reader` is more of `reader`.
SECTIONS = {
    "machine": "eadpr.machine:Machine",
    "atlas": "eadpr.atlas.generate:Atlas",
    "prepare": "eadpr.corpus.sources:Prepare",
    "facts": "eadpr.corpus.entities:Facts",
    "paq": "eadpr.corpus.entities:Paq",
    "bm25": "eadpr.supervision.bm25:BM25",
    "positives": "eadpr.supervision.positives:Positives",
    "base": "eadpr.training.config:Base",
    "encoder": "eadpr.training.config:EncoderSettings",
    "annotator": "eadpr.supervision.config:Annotator",
    "evidence": "eadpr.supervision.config:EvidenceSettings",
    "distractors": "eadpr.supervision.config:Distractors",
    "near_duplicates": "eadpr.near_duplicates.config:NearDuplicates",
    "written": "eadpr.language_models.config:Written",
    "seq2seq": "eadpr.language_models.config:Seq2Seq",
    "endpoint": "eadpr.language_models.config:Endpoint",
    "given": "eadpr.language_models.config:Given",
    "denoise": "eadpr.supervision.denoise:Denoise",
    "negatives": "eadpr.supervision.negatives:Negatives",
    "examples": "eadpr.supervision.examples:Examples",
    "loss": "eadpr.training.config:Loss",
    "train": "eadpr.training.config:Train",
    "encode": "eadpr.search.config:Encode",
    "query_side": "eadpr.search.config:QuerySide",
    "retrieve": "eadpr.search.config:Retrieve",
    "two_hop": "eadpr.multihop.config:TwoHop",
    "beam": "eadpr.multihop.config:Beam",
    "fuse": "eadpr.search.config:Fuse",
    "probe": "eadpr.search.config:Probe",
    "reader": "eadpr.reading.config:Reader",
    "read": "eadpr.reading.config:Read",
    "evaluate": "eadpr.evaluation.config:Evaluate",
    "report": "eadpr.evaluation.config:Report",
}
# What stages are given: these, with what `configs` adds or leaves out, and the hashes of a section's model folder.
GIVEN = {name: kind for name, kind in SECTIONS.items() if name not in ("seq2seq", "given")} | {
    "endpoint": "eadpr.language_models.config:Asked",
    "examples": "eadpr.supervision.examples:ArmExamples",
    "near_duplicates": "eadpr.near_duplicates.config:Generation",
    "report": "eadpr.evaluation.config:ReportArms",
    "robustness": "eadpr.evaluation.config:Robustness",
    "sets": "eadpr.config:Sets",
    "source": "eadpr.corpus.sources:Source",
    "writer": "eadpr.language_models.config:Writer",
}
GIVEN |= {f"{name}_files": "eadpr.model_folders:ModelFiles" for name in ("annotator", "base", "reader")}
# Help of the options; the docstrings of stages say what is in the outputs.
PATHS = {
    "accuracy": "JSON file that evaluate_evidence wrote.",
    "annotator": "Folder of the annotator.",
    "distractors": "Folder of distractors.parquet and report.json.",
    "duplicates": "Folder of near_duplicates.parquet and report.json.",
    "evidence": "Table of evidence spans.",
    "examples": "Folder of examples.parquet, distractors.parquet, report.json; of a report, the folder of such ones.",
    "first": "Folder of the first of two rankings or readers.",
    "init": "Folder of the model to start from.",
    "log": "Folder to write the log to, in DVCLive's layout.",
    "metrics": "JSON file of headline metrics to write.",
    "model": "Folder of question_encoder and passage_encoder.",
    "negatives": "Folder of negatives.parquet and report.json; of a report, the folder of such folders.",
    "out": "Folder or file to write.",
    "outcomes": "Folder of all tables of outcomes.",
    "pairs": "Table of pair scores, none for BM25; of a report, the folder of such tables.",
    "positives": "Folder of positives.parquet and folds.parquet.",
    "ranking": "Folder of a ranking, train.parquet and evaluate.parquet; in paths/ the paths it was made of, if any.",
    "raw": "Folder of the collection's downloads.",
    "reader": "Folder of a trained reader.",
    "reading": "Folder of predictions.parquet.",
    "records": "Folder of the collection's passages, questions, question sets, contexts and origins.",
    "scores": "Table of a reader's scores of the ranking's passages.",
    "second": "Folder of the second of two rankings or readers.",
    "sources": "Folder of the collection's own files and pins.json.",
    "training": "Folder of the arms' training logs.",
    "vectors": "Folder of the passages' vectors, made with the same model.",
}
