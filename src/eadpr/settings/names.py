"""The class of each section that a stage can take, by the name in the stage's signature.

One name means the same in every stage. Importing the module must stay cheap.
"""

# The shared sections of params.yaml.
SECTIONS = {
    "machine": "eadpr.runtime.machine:Machine",
    "atlas": "eadpr.atlas.generate:Atlas",
    "prepare": "eadpr.corpus.sources:Prepare",
    "facts": "eadpr.corpus.formats.trex_facts:Facts",
    "paq": "eadpr.corpus.formats.paq:Paq",
    "bm25": "eadpr.supervision.bm25:BM25",
    "positives": "eadpr.supervision.positives:Positives",
    "base": "eadpr.training.config:Base",
    "encoder": "eadpr.training.config:EncoderSettings",
    "annotator": "eadpr.supervision.config:Annotator",
    "evidence": "eadpr.supervision.config:EvidenceSettings",
    "distractors": "eadpr.supervision.config:Distractors",
    "near_duplicates": "eadpr.robustness.config:NearDuplicates",
    "endpoint": "eadpr.writers.config:Endpoint",
    "negatives": "eadpr.supervision.negatives:Negatives",
    "examples": "eadpr.supervision.examples:Examples",
    "loss": "eadpr.training.config:Loss",
    "train": "eadpr.training.config:Train",
    "encode": "eadpr.search.config:Encode",
    "query_side": "eadpr.search.config:QuerySide",
    "retrieve": "eadpr.search.config:Retrieve",
    "two_hop": "eadpr.two_hops.config:TwoHop",
    "beam": "eadpr.two_hops.config:Beam",
    "fuse": "eadpr.search.config:Fuse",
    "probe": "eadpr.search.config:Probe",
    "reader": "eadpr.readers.config:Reader",
    "path_reader": "eadpr.readers.config:PathReader",
    "read": "eadpr.readers.config:Read",
    "evaluate": "eadpr.evaluation.config:Evaluate",
    "report": "eadpr.report.config:Report",
}
# What stages are given: these, with what `configs` adds or leaves out, and the hashes of a section's model folder.
GIVEN = {name: kind for name, kind in SECTIONS.items() if name != "path_reader"} | {
    "examples": "eadpr.supervision.examples:ArmExamples",
    "near_duplicates": "eadpr.robustness.config:Generation",
    "report": "eadpr.report.config:ReportArms",
    "robustness": "eadpr.robustness.config:Robustness",
    "sets": "eadpr.runtime.section:Sets",
    "source": "eadpr.corpus.sources:Source",
}
GIVEN |= {f"{name}_files": "eadpr.runtime.model_folders:ModelFiles" for name in ("annotator", "base", "reader")}
