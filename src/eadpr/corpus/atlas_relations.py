"""All relations of the atlas by id; the ids of those that are not T-REx's are words."""

from __future__ import annotations

from eadpr.corpus.atlas_quantities import HOW, WHEN
from eadpr.corpus.atlas_roles import WHAT, WHO
from eadpr.corpus.atlas_trex import TREX

RELATIONS = TREX | WHEN | HOW | WHO | WHAT
