from eadpr.library.awareness import Awareness as Awareness
from eadpr.library.awareness import awareness as awareness
from eadpr.library.awareness import table as table
from eadpr.library.evaluator import AwarenessEvaluator as AwarenessEvaluator
from eadpr.library.losses import EvidenceLoss as EvidenceLoss
from eadpr.library.losses import cached as cached
from eadpr.library.losses import evidence_loss as evidence_loss
from eadpr.library.pointing import Pointed as Pointed
from eadpr.library.pointing import ScoredSentence as ScoredSentence
from eadpr.library.pointing import point as point
from eadpr.library.scorers import Scorer as Scorer
from eadpr.library.scorers import bm25 as bm25
from eadpr.library.texts import Texts as Texts
from eadpr.library.texts import annotate as annotate
from eadpr.library.texts import distractors as distractors
from eadpr.library.texts import training_rows as training_rows
from eadpr.training.losses import Terms as Terms

__version__: str
