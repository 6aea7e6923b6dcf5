"""The kinds of entity in a block: how many of each, what is known of them, and sentences that tell nothing asked about.

`lead` opens an entity's first passage, `filler` fills up; slots are those of `relation`, {noun} is what the
entity is, {Y} the name of another entity of its kind, {season} a season.
"""

from __future__ import annotations

from typing import NamedTuple

from eadpr.atlas import pools as pools


class Kind(NamedTuple):
    count: int
    passages: int
    nouns: tuple[str, ...]
    relations: tuple[str, ...]
    lead: tuple[str, ...]
    filler: tuple[str, ...]


_PERSON_LEAD = (
    "{X} was {noun} whose fame outlived most rivals.",
    "{X} is remembered as {noun} of unusual patience.",
    "Among {nouns} of that time, {x} held a special place.",
)
_PERSON = (
    "{X} kept a small garden and grew roses.",
    "{X} was afraid of the sea and never learned to swim.",
    "Letters to friends show {x} as a restless and generous spirit.",
    "In the {season} {x} liked to walk for hours without a hat.",
    "{X} collected old maps and could talk about them for hours.",
    "Those who knew {x} spoke of a dry sense of humour.",
    "{X} slept badly and worked mostly at night.",
    "Every {season} {x} gave a dinner for the neighbours.",
    "{X} is sometimes mistaken for {Y}, though the two never met.",
    "{X} once shared a train compartment with {Y}.",
    "A street sign with the name of {x} was stolen in the {season}.",
    "{X} distrusted doctors and trusted horses.",
    "For a while {x} shared a small flat with a noisy parrot.",
    "{X} answered every letter by hand.",
    "Two portraits of {x} are known, and neither is a good likeness.",
    "{X} gave up smoking on a bet.",
)
_MUSIC = (
    "{X} preferred small rooms to large ones.",
    "Rehearsals of {x} were long and strict.",
    "{X} once appeared on the same evening as {Y}.",
)
_THING = (
    "{X} is still talked about today.",
    "Opinions about {x} are divided.",
    "An exhibition about {x} was shown in the {season}.",
    "Collectors pay high sums for early photographs of {x}.",
    "{X} is sometimes confused with {Y}.",
    "In one respect {x} resembles {Y}.",
    "Much of what is told about {x} is legend.",
    "A radio programme about {x} was repeated every {season}.",
    "Children like to draw pictures of {x}.",
    "{X} is the subject of many jokes.",
    "Few people have studied {x} with care.",
    "Old hands shake their heads when {x} is mentioned.",
)

BIRTH = ("P19", "P20", "born")

KINDS = {
    "town": Kind(
        7,
        4,
        ("town",),
        ("P17", "inhabitants", "founded", "mayor"),
        ("{X} is a town of narrow streets.", "{X} is a quiet town of brick houses and lime trees."),
        (
            "A river divides {x} into an old and a new part.",
            "The market of {x} is held under the arcades.",
            "In the {season} fog hangs over {x} for days.",
            "Trams in {x} are painted green.",
            "{X} has a sister town, {Y}, with which choirs are exchanged.",
            "The road from {x} to {Y} is lined with poplars.",
            "{X} suffered from floods and was rebuilt with care.",
            "Painters have praised the light in {x}.",
            "The bells of {x} are out of tune.",
            "Bread from {x} is baked with rye and honey.",
            "{X} is proud of its gardens.",
            "Every {season} a fair fills the streets of {x}.",
            "A small museum in {x} shows tools and clocks.",
            "Storks nest on the roofs of {x}.",
        ),
    ),
    "mountain": Kind(
        4,
        3,
        ("mountain",),
        ("P17", "P30", "height"),
        ("{X} is a mountain with a broad back of snow.", "{X} is a mountain of dark stone."),
        (
            "Shepherds avoid {x} in the {season}.",
            "{X} can be seen from {Y} on clear days.",
            "A hut below {x} offers soup and a bed.",
            "Eagles breed on the cliffs of {x}.",
            "The north side of {x} is covered with ice.",
            "A path leads round {x} in a single day.",
            "Rockfalls on {x} are common in the {season}.",
            "Old songs tell of a giant asleep under {x}.",
            "The first people to sleep on {x} were botanists.",
            "{X} is often hidden by clouds.",
            "A rare blue flower grows on {x}.",
            "Painters have shown {x} and {Y} side by side.",
        ),
    ),
    "athlete": Kind(
        6,
        4,
        ("player",),
        (*BIRTH, "P413", "team"),
        _PERSON_LEAD,
        (*_PERSON, "{X} trained alone, before breakfast.", "Knee trouble bothered {x} from early on."),
    ),
    "musician": Kind(5, 4, ("musician",), (*BIRTH, "P136", "P264", "instrument"), _PERSON_LEAD, (*_PERSON, *_MUSIC)),
    "writer": Kind(
        3,
        3,
        ("writer", "novelist"),
        (*BIRTH, "prize", "university"),
        _PERSON_LEAD,
        (*_PERSON, "{X} burned whole drafts without regret.", "{X} wrote standing up, at a kitchen table."),
    ),
    "filmmaker": Kind(
        3,
        3,
        ("film-maker",),
        (*BIRTH, "prize", "university"),
        _PERSON_LEAD,
        (*_PERSON, "{X} drew every scene on cards.", "{X} disliked studio light and waited for the {season}."),
    ),
    "architect": Kind(
        3,
        3,
        ("architect",),
        (*BIRTH, "prize", "university"),
        _PERSON_LEAD,
        (*_PERSON, "{X} built models out of matches.", "{X} hated straight lines and said so."),
    ),
    "entrepreneur": Kind(
        3,
        3,
        ("entrepreneur",),
        (*BIRTH, "university"),
        _PERSON_LEAD,
        (*_PERSON, "{X} kept all accounts in green ink.", "{X} believed in honest prices."),
    ),
    "band": Kind(
        4,
        4,
        ("band",),
        ("P136", "P264", "P740", "founded", "members"),
        ("{X} is a band with a small but loyal following.", "{X} is a band known for long evenings on stage."),
        (*_THING, *_MUSIC, "The van of {x} broke down every {season}.", "Posters of {x} are hard to find."),
    ),
    "company": Kind(
        5,
        4,
        ("company",),
        ("P127", "P159", "P740", "founded", "founder", "employees"),
        ("{X} is a company with a long and uneven history.", "{X} is a company that advertises very little."),
        (
            *_THING,
            "The lamps in the offices of {x} burn all night.",
            "{X} gives every apprentice a watch.",
            "Business at {x} is slow in the {season}.",
            "The canteen of {x} is famous for its dumplings.",
        ),
    ),
    "product": Kind(
        3,
        3,
        pools.PRODUCT_NOUNS,
        ("P176", "P495", "released", "designer"),
        ("{X} is {noun} with a plain, sturdy shape.", "{X} is {noun} that was sold in many colours."),
        (
            *_THING,
            "Spare parts for {x} are hard to come by.",
            "{X} was cheap to repair and hard to break.",
            "Grandparents kept {x} in the cellar or the shed.",
        ),
    ),
    "film": Kind(
        4,
        3,
        ("film",),
        ("P495", "director", "released", "length"),
        ("{X} is a film about a family and a stolen horse.", "{X} is a film set on a ferry in the {season}."),
        (
            *_THING,
            "The last scene of {x} was shot in heavy rain.",
            "The horses in {x} belonged to a circus.",
            "{X} was shown to sailors and prisoners.",
            "Some viewers left {x} in tears.",
        ),
    ),
    "book": Kind(
        4,
        3,
        ("book",),
        ("P407", "author", "published", "pages"),
        ("{X} is a book about an island and its lighthouse.", "{X} is a book that opens with a storm in the {season}."),
        (
            *_THING,
            "The hero of {x} never learns the truth.",
            "A dog plays an important part in {x}.",
            "{X} was read aloud in barracks and hospitals.",
            "Some chapters of {x} can be read as poems.",
        ),
    ),
    "building": Kind(
        3,
        4,
        (),
        ("P127", "P276", "designer", "opened", "seats"),
        ("{X} is {noun} with a heavy copper roof.", "{X} is {noun} built of pale stone."),
        (
            *_THING,
            "Swallows nest under the roof of {x}.",
            "The acoustics of {x} are better than its heating.",
            "{X} stands empty for most of the {season}.",
            "A cat called Minister guarded {x} against mice.",
        ),
    ),
    "team": Kind(
        3,
        3,
        ("team",),
        ("P127", "P740", "founded", "coach"),
        ("{X} is a team with a long list of narrow defeats.", "{X} is a team whose matches are rarely dull."),
        (
            *_THING,
            "Away matches of {x} are followed by a brass band.",
            "A long rivalry binds {x} to {Y}.",
            "The pitch of {x} turns to mud in the {season}.",
            "A goat is the mascot of {x}.",
        ),
    ),
}
PERSONS = ("athlete", "musician", "writer", "filmmaker", "architect", "entrepreneur")
ENTITIES = sum(kind.count for kind in KINDS.values())
PASSAGES = sum(kind.count * kind.passages for kind in KINDS.values())
