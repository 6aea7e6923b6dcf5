"""What the atlas draws from: parts of invented names, and pools of answers shared by many entities.

No answer of one pool is part of an answer of another that an entity could have too.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(","))


ONSETS = _words("B Br C Cr D Dr F Fr G Gr H J K L M N P Pr R S St T Tr V")
VOWELS = _words("a e i o u ai")
MIDDLES = _words("b d g k l ld lk lm lv m mb n nd nt p r rd rk rl rm rn rv s sk sp st t th v z")
ENDS = _words("a ac al an ane ar el elle em er et ia ik in is o on or os una")
# Put in when the short names are used up.
SYLLABLES = ("", *(vowel + consonant for vowel in "aeiou" for consonant in "dkgp"))
GIVEN = {
    "she": _words(
        "Ada Alma Anouk Beata Carla Celia Clara Dora Edith Elsa Emilia Esther Flora Frida Greta Hanna Helga Ida Ines "
        "Irma Jana Judith Karin Klara Lena Lidia Lucia Magda Marta Mina Mira Nadia Nora Olga Paula Petra Renata Rosa "
        "Selma Sonja Stella Tilda Ulla Vera Vilma Wanda Yvonne Zelda"
    ),
    "he": _words(
        "Abel Adrian Alec Anton Arno Bela Bruno Caspar Cyril Daniel Edgar Emil Erik Felix Frank Gustav Hans Hector "
        "Hugo Igor Ivan Jakob Jonas Karl Klaus Konrad Leo Linus Ludwig Magnus Martin Max Milan Nils Oscar Otto Paul "
        "Pavel Ralph Roman Rudolf Simon Stefan Theo Tomas Ulrich Victor Walter"
    ),
}
FORMS = {
    "town": _list(
        "{s} Bay, {s} Bridge, {s} Castle, {s} Cross, {s} Falls, {s} Ferry, {s} Green, {s} Grove, {s} Haven, {s} Heath, "
        "{s} Hill, {s} Market, {s} Mills, {s} Moor, {s} Sands, {s} Wells, Great {s}, New {s}, Old {s}, Port {s}"
    ),
    "mountain": _list("Mount {s}, {s} Peak, {s} Horn, {s} Ridge, {s} Fell, {s} Spire, {s} Tor, {s} Needle"),
    "company": _list(
        "{s} Industries, {s} Works, {s} Motors, {s} Holdings, {s} Trading, {s} Brothers, {s} Partners, {s} Group, "
        "{s} Electric, {s} Instruments, {s} Foundry, {s} and Sons"
    ),
    "product": _list(
        "{s} Comet, {s} Swift, {s} Pioneer, {s} Falcon, {s} Standard, {s} Junior, {s} Regent, {s} Meteor, {s} Ranger, "
        "{s} Astra, {s} Corona, {s} Vega"
    ),
    "band": _list(
        "{s} Parade, {s} Street, {s} Avenue, {s} Machine, {s} Society, {s} Garden, {s} Express, {s} Weather, "
        "{s} Lanterns, {s} Carnival, {s} Hotel, {s} Theory"
    ),
    "team": _list(
        "{s} Rovers, {s} Wanderers, {s} United, {s} Athletic, {s} Harriers, {s} Albion, {s} Rangers, {s} Strollers, "
        "{s} Hawks, {s} Bears"
    ),
    "building": _list("{s} Stadium, {s} Arena, {s} Theatre, {s} Hall, {s} Opera, {s} Playhouse"),
}
TITLES = _list(
    "The {n} of {s}, My {n} in {s}, Letters from {s}, The Last {n} of {s}, Beyond {s}, The Road to {s}, "
    "{s} and the {n2}, Farewell to {s}, {s} in Winter, The {n2} of {s}, Return to {s}, No {n} in {s}"
)
NOUNS = _words(
    "Harbour Orchard Lantern Winter Garden Mirror Bridge River Island Shadow Clock Silence Letter Tower Forest Window"
)
PERSONAGES = _words("Queen Thief Painter Sailor Doctor Widow Gardener Stranger Miller Ferryman Judge Soldier")
PRODUCT_NOUNS = _list("camera, typewriter, motorcycle, bicycle, tractor, wristwatch, sewing machine, radio set")

CONTINENTS = _words("Aurelia Borantis Cymeria Dorvania Estoria Feronia Galdoria")
COUNTRIES = _words(
    "Almaria Bravonia Carpesia Delmora Evland Fenmark Gavaria Holtria Istvania Jorvaland Kestovia Lurania Morvia "
    "Nordalia Orsenna Pelagonia Quessant Rovinia Silvania Tarvistan Urdania Velmark Wendland Zembla"
)
LANGUAGES = _words(
    "Almarian Bravonese Carpesian Delmoran Evlandic Fenmarkish Gavarian Holtrian Istvanian Jorvish Kestovian Luranian "
    "Morvian Nordalian Orsennan Pelagonian Quessantine Rovinian"
)
GENRES = _list(
    "bluegrass, ska, reggae, synthpop, trip hop, polka, flamenco, gospel, techno, grunge, swing, calypso, klezmer, "
    "surf rock, dub, funk, zydeco, baroque pop, drone metal, chanson, samba, bebop, fado, ragtime"
)
LABELS = _list(
    "Amber Records, Anchor Records, Basalt Records, Beacon Records, Cinder Records, Compass Records, Copper Records, "
    "Dovetail Records, Ember Records, Foxglove Records, Granite Records, Juniper Records, Keystone Records, "
    "Lodestar Records, Magpie Records, Nightjar Records, Orchid Records, Paragon Records, Quartz Records, "
    "Rosewood Records, Saffron Records, Thistle Records, Velvet Records, Willow Records"
)
POSITIONS = _list(
    "goalkeeper, sweeper, winger, striker, left back, right back, centre half, full back, fly half, point guard, "
    "shooting guard, quarterback, linebacker, shortstop, catcher, outfielder"
)
INSTRUMENTS = _words(
    "accordion banjo bassoon cello clarinet dulcimer fiddle flute harmonica harp mandolin oboe piano saxophone "
    "trombone trumpet viola zither"
)
PRIZES = _list(
    "Amaranth Prize, Aurora Prize, Chalice Prize, Cypress Prize, Garnet Prize, Sable Prize, Heron Prize, "
    "Hyperion Prize, Laurel Prize, Meridian Prize, Obelisk Prize, Orpheus Prize, Pegasus Prize, Sextant Prize, "
    "Solstice Prize, Trident Prize"
)
UNIVERSITIES = _list(
    "Almond University, Ashgrove University, Bellhaven University, Castlerock University, Dunmere University, "
    "Eastmoor University, Fairlight University, Greystone University, Hollins University, Kingsmarsh University, "
    "Larkfield University, Northgate University, Pennard University, Ravensby University, Stonewell University, "
    "Westering University"
)
COUNTS = _words("three four five six seven eight nine ten eleven twelve")
