"""All relations of the atlas by id; the ids of those that are not T-REx's are words."""

from __future__ import annotations

from eadpr.atlas.quantities import HOW, WHEN
from eadpr.atlas.roles import WHAT, WHO
from eadpr.atlas.trex import TREX

RELATIONS = TREX | WHEN | HOW | WHO | WHAT
