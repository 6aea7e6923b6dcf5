"""Evidence-aware dense retrievers: the functions and classes for other trainers and models, loaded on first use.

Their types are in `__init__.pyi`: an import here would make every stage depend on them (`stage_code`).
"""

import importlib

_MODULES = {
    "losses": ("EvidenceLoss", "Terms", "cached", "evidence_loss"),
    "texts": ("Texts", "annotate", "distractors", "training_rows"),
    "awareness": ("Awareness", "awareness", "table"),
    "scorers": ("Scorer", "bm25"),
    "pointing": ("Pointed", "ScoredSentence", "point"),
    "evaluator": ("AwarenessEvaluator",),
}
_MODULE = {name: f"eadpr.library.{module}" for module, names in _MODULES.items() for name in names}
__all__ = sorted(_MODULE)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("eadpr")
    if name not in _MODULE:
        raise AttributeError(f"module 'eadpr' has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULE[name])
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "eadpr"):
            raise
        extra = "sentence-transformers" if missing == "sentence_transformers" else "awareness"
        advice = f"eadpr.{name} needs {missing}, which is not installed; pip install 'eadpr[{extra}]'"
        raise ModuleNotFoundError(advice, name=missing) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
