"""Settings of the stage `explore`; the stage `configs` names the rankings."""

from eadpr.runtime.section import Section


class Explore(Section):
    """`rankings` are all that the pipeline makes."""

    rankings: list[str]
