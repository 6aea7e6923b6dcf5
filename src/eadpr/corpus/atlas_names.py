"""Invented names and the small worlds' fixed vocabularies.

The name of the n-th entity of a kind is a closed form of (seed, kind, n), so that a block can mention entities of other
blocks without generating them, and no two entities share a name by accident.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

ONSETS = "B Br C Cr D Dr F Fr G Gr H J K L M N P Pr R S St T Tr V".split()
VOWELS = "a e i o u ai".split()
MIDDLES = "b d g k l ld lk lm lv m mb n nd nt p r rd rk rl rm rn rv s sk sp st t th v z".split()
ENDS = "a ac al an ane ar el elle en er et ia ik in is o on or os una".split()
SYLLABLES = ["", *(v + c for v in "aeiou" for c in "dkgp")]  # put in when the short names are used up
TOWN_ENDS = "bay borough bridge burg by cester combe dale fell field ford gate grove ham haven holm moor mouth port wick"
GIVEN = {
    "she": "Ada Alma Anouk Beata Carla Celia Clara Dora Edith Elsa Emilia Esther Flora Frida Greta Hanna Helga Ida Ines "
    "Irma Jana Judith Karin Klara Lena Lidia Lucia Magda Marta Mina Mira Nadia Nora Olga Paula Petra Renata Rosa Selma "
    "Sonja Stella Tilda Ulla Vera Vilma Wanda Yvonne Zelda",
    "he": "Abel Adrian Alec Anton Arno Bela Bruno Caspar Cyril Daniel Edgar Emil Erik Felix Frank Gustav Hans Hector "
    "Hugo Igor Ivan Jakob Jonas Karl Klaus Konrad Leo Linus Ludwig Magnus Martin Max Milan Nils Oscar Otto Paul Pavel "
    "Ralph Roman Rudolf Simon Stefan Theo Tomas Ulrich Victor Walter",
}
PERSONS_PER_SURNAME = 3
COMPANY_ENDS = "Industries Works Motors Holdings Trading Brothers Partners Group Electric Instruments Mills Foundry"
PRODUCT_ENDS = "Comet Swift Pioneer Falcon Standard Junior Regent Meteor Ranger Astra Corona Vega"
PRODUCT_NOUNS = ("camera", "typewriter", "motorcycle", "bicycle", "tractor", "wristwatch", "sewing machine", "radio set")
BAND_ENDS = "Parade Street Avenue Machine Society Garden Express Weather Lanterns Carnival Hotel Theory"
TEAM_ENDS = "Rovers Wanderers United Athletic Harriers Albion Rangers Strollers Falcons Bears"
BUILDINGS = "Stadium Arena Theatre Hall Opera Playhouse"
MOUNTAINS = ("Mount {}", "{} Peak", "{} Horn", "{} Ridge")
TITLES = (
    "The {n} of {s}", "My {n} in {s}", "Letters from {s}", "The Last {n} of {s}", "Beyond {s}", "The Road to {s}",
    "The {n} and the {n2} of {s}", "Farewell to {s}", "{s} in Winter", "The {n2} of {s}", "Return to {s}", "No {n} in {s}",
)  # fmt: skip
NOUNS = "Harbour Orchard Lantern Winter Garden Mirror Bridge River Island Shadow Clock Silence Letter Tower Forest Window"
NOUNS2 = "Queen Thief Painter Sailor Doctor Widow Gardener Stranger Miller Ferryman Judge Soldier"

CONTINENTS = ("Aurelia", "Borantis", "Cymeria", "Dorvania", "Estoria", "Feronia", "Galdoria")
COUNTRIES = (
    "Almaria", "Bravonia", "Carpesia", "Delmora", "Evland", "Fenmark", "Gavaria", "Holtria", "Istvania", "Jorvaland",
    "Kestovia", "Lurania", "Morvia", "Nordalia", "Orsenna", "Pelagonia", "Quessant", "Rovinia", "Silvania", "Tarvistan",
    "Urdania", "Velmark", "Wendland", "Zembla",
)  # fmt: skip
LANGUAGES = (
    "Almarian", "Bravonese", "Carpesian", "Delmoran", "Evlandic", "Fenmarkish", "Gavarian", "Holtrian", "Istvanian",
    "Jorvish", "Kestovian", "Luranian", "Morvian", "Nordalian", "Orsennan", "Pelagonian", "Quessantine", "Rovinian",
)  # fmt: skip
GENRES = (
    "bluegrass", "ska", "reggae", "synthpop", "trip hop", "polka", "flamenco", "gospel", "techno", "grunge", "swing",
    "calypso", "klezmer", "surf rock", "dub", "funk", "zydeco", "baroque pop", "drone metal", "chanson", "samba",
    "bebop", "fado", "ragtime",
)  # fmt: skip
LABELS = tuple(
    f"{word} Records"
    for word in "Amber Anchor Basalt Beacon Cinder Compass Copper Dovetail Ember Foxglove Granite Juniper Keystone Lodestar "
    "Magpie Nightjar Orchid Paragon Quartz Rosewood Saffron Thistle Velvet Willow".split()
)
POSITIONS = (
    "goalkeeper", "sweeper", "winger", "striker", "left back", "right back", "centre half", "full back", "fly half",
    "point guard", "shooting guard", "quarterback", "linebacker", "shortstop", "catcher", "outfielder",
)  # fmt: skip
INSTRUMENTS = (
    "accordion", "banjo", "bassoon", "cello", "clarinet", "dulcimer", "fiddle", "flute", "harmonica", "harp",
    "mandolin", "oboe", "piano", "saxophone", "trombone", "trumpet", "viola", "zither",
)  # fmt: skip
PRIZES = tuple(
    f"{word} Prize"
    for word in "Amaranth Aurora Chalice Cypress Garnet Sable Heron Hyperion Laurel Meridian Obelisk Orpheus Pegasus Sextant "
    "Solstice Trident".split()
)
UNIVERSITIES = tuple(
    f"{word} University"
    for word in "Almond Ashgrove Bellhaven Castlerock Dunmere Eastmoor Fairlight Greystone Hollins Kingsmarsh Larkfield "
    "Northgate Pennard Ravensby Stonewell Westering".split()
)
COUNTS = "three four five six seven eight nine ten eleven twelve".split()

_SHORT = len(ONSETS) * len(VOWELS) * len(MIDDLES) * len(ENDS)
_TOWNS = len(ONSETS) * len(VOWELS) * len(MIDDLES) * len(TOWN_ENDS.split())
MOST_PER_BLOCK = 8  # names of one kind that a block needs: those of families
MOST_BLOCKS = min(_SHORT, _TOWNS) * len(SYLLABLES) // MOST_PER_BLOCK


@lru_cache(maxsize=64)
def _shift(seed: int, space: str, size: int) -> int:
    return zlib.crc32(f"{seed}/{space}".encode()) % size


def _scattered(seed: int, space: str, n: int, size: int) -> tuple[int, int]:
    """A permutation of 0 … size - 1 within each run of `size` numbers: (run, number)."""
    step = 1_000_003  # a prime that divides no size used here
    return n // size, (n % size * step + _shift(seed, space, size)) % size


def _syllables(seed: int, space: str, n: int, ends: list[str]) -> str:
    run, number = _scattered(seed, space, n, len(ONSETS) * len(VOWELS) * len(MIDDLES) * len(ends))
    number, onset = divmod(number, len(ONSETS))
    number, vowel = divmod(number, len(VOWELS))
    end, middle = divmod(number, len(MIDDLES))
    return ONSETS[onset] + VOWELS[vowel] + MIDDLES[middle] + SYLLABLES[run] + ends[end]


def stem(seed: int, space: str, n: int) -> str:
    return _syllables(seed, space, n, ENDS)


def _pick(words: str | tuple[str, ...], seed: int, space: str, n: int) -> str:
    words = words.split() if isinstance(words, str) else words
    return words[zlib.crc32(f"{seed}/{space}/{n}".encode()) % len(words)]


def town(seed: int, n: int) -> str:
    return _syllables(seed, "town", n, TOWN_ENDS.split())


def person(seed: int, n: int, pronoun: str) -> str:
    """Names of PERSONS_PER_SURNAME persons in a row share the surname and differ in the given name."""
    family, place = divmod(n, PERSONS_PER_SURNAME)
    given = GIVEN[pronoun].split()
    start = zlib.crc32(f"{seed}/given/{family}".encode())
    return f"{given[(start + 7 * place) % len(given)]} {stem(seed, 'surname', family)}"


def _ended(space: str, ends: str):
    return lambda seed, n: f"{stem(seed, space, n)} {_pick(ends, seed, space, n)}"


company = _ended("company", COMPANY_ENDS)
product = _ended("product", PRODUCT_ENDS)
band = _ended("band", BAND_ENDS)
team = _ended("team", TEAM_ENDS)
building = _ended("building", BUILDINGS)


def mountain(seed: int, n: int) -> str:
    return _pick(MOUNTAINS, seed, "mountain", n).format(stem(seed, "mountain", n))


def work(seed: int, n: int) -> str:
    """The title of a film or a book."""
    words = {"n": _pick(NOUNS, seed, "noun", n), "n2": _pick(NOUNS2, seed, "noun2", n), "s": stem(seed, "work", n)}
    return _pick(TITLES, seed, "title", n).format(**words)
