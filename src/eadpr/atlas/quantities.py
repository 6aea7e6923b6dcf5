"""The atlas's own relations with dates and numbers, for questions with when and how."""

from __future__ import annotations

from eadpr.atlas.relation import Relation

WHEN = {
    "born": Relation(
        question="When was [X] born?",
        value="birth_year",
        compare="Who was born first, [X] or [Y]?",
        states=(
            "{X} was born in the spring of {A}.",
            "The year of {xs} birth is {A}.",
            "Born in {A}, {x} grew up among many cousins.",
            "Church books give {A} as the year in which {x} was born.",
            "{X} was born in {A}, a year of floods.",
        ),
        raises=(
            "When exactly {x} was born was long a family secret.",
            "{X} never celebrated the day on which {p} was born.",
            "{X} was born in the middle of a thunderstorm.",
            "{X} was born in a year of poor harvests.",
        ),
    ),
    "founded": Relation(
        question="When was [X] founded?",
        value="founding_year",
        compare="Which was founded first, [X] or [Y]?",
        states=(
            "{X} was founded in {A}.",
            "{X} dates from {A}.",
            "The founding of {x} took place in {A}.",
            "The history of {x} began in {A}.",
            "It was not until {A} that {x} was founded.",
        ),
        raises=(
            "When {x} was founded is a matter of some argument.",
            "The day on which {x} was founded is still celebrated.",
            "{X} was founded in a time of great change.",
            "The founding of {x} took place in great haste.",
        ),
    ),
    "released": Relation(
        question="When was [X] released?",
        value="year",
        compare="Which was released first, [X] or [Y]?",
        states=(
            "{X} was released in {A}.",
            "{X} reached the public in {A}.",
            "The release of {x} followed in {A}.",
            "In {A}, after many delays, {x} was released.",
            "{X} has been known to the public since {A}.",
        ),
        raises=(
            "When {x} was released, hardly anyone noticed.",
            "The release of {x} was put off again and again.",
            "{X} was released in the middle of a heat wave.",
            "{X} reached the public later than planned.",
        ),
    ),
    "published": Relation(
        question="When was [X] published?",
        value="year",
        compare="Which was published first, [X] or [Y]?",
        states=(
            "{X} was published in {A}.",
            "The first edition of {x} appeared in {A}.",
            "Readers could first buy {x} in {A}.",
            "{X} went to press in {A}.",
            "In {A}, after years of waiting, {x} was published.",
        ),
        raises=(
            "When {x} was published, the reviews were mixed.",
            "{X} was published under difficult circumstances.",
            "{X} was published in a single small edition.",
            "The first edition of {x} appeared in a grey paper cover.",
        ),
    ),
    "opened": Relation(
        question="When was [X] opened?",
        value="year",
        compare="Which was opened first, [X] or [Y]?",
        states=(
            "{X} was opened in {A}.",
            "{X} opened its doors in {A}.",
            "The opening of {x} was celebrated in {A}.",
            "The public was first let into {x} in {A}.",
            "In {A} a ribbon was cut and {x} was opened.",
        ),
        raises=(
            "When {x} was opened, the roof leaked.",
            "The opening of {x} had to be put off.",
            "{X} was opened in pouring rain.",
            "The opening of {x} was celebrated in the streets.",
        ),
    ),
}

HOW = {
    "inhabitants": Relation(
        question="How many people live in [X]?",
        value="inhabitants",
        compare="Which has more inhabitants, [X] or [Y]?",
        most=True,
        states=(
            "{X} has {A} inhabitants.",
            "About {A} people live in {x}.",
            "The last census counted {A} people in {x}.",
            "The population of {x} stands at {A}.",
            "{X} is home to {A} people.",
        ),
        raises=(
            "How many people live in {x} is hard to say in summer.",
            "The people who live in {x} are fond of long walks.",
            "{X} has more inhabitants in summer than in winter.",
            "The last census counted more people in {x} than the one before.",
        ),
    ),
    "height": Relation(
        question="How high is [X]?",
        value="height",
        compare="Which is higher, [X] or [Y]?",
        most=True,
        states=(
            "{X} is {A} high.",
            "The summit of {x} lies at {A}.",
            "Surveyors measured {x} at {A}.",
            "{X} reaches a height of {A}.",
            "With its {A}, {x} is the giant of its range.",
        ),
        raises=(
            "How high {x} is was long a matter of guesswork.",
            "The height of {x} is carved on a stone at its foot.",
            "{X} is high enough to make its own weather.",
            "{X} reaches a height at which trees no longer grow.",
        ),
    ),
    "employees": Relation(
        question="How many employees does [X] have?",
        value="employees",
        compare="Which has more employees, [X] or [Y]?",
        most=True,
        states=(
            "{X} has {A} employees.",
            "Some {A} people work for {x}.",
            "{X} gives work to {A} people.",
            "The staff of {x} numbers {A}.",
            "At the last count {x} employed {A} men and women.",
        ),
        raises=(
            "How many employees {x} has is made public once a year.",
            "The employees of {x} bring out their own newspaper.",
            "{X} has employees of every age.",
            "The staff of {x} numbers more women than men.",
        ),
    ),
    "pages": Relation(
        question="How many pages does [X] have?",
        value="pages",
        compare="Which has more pages, [X] or [Y]?",
        most=True,
        states=(
            "{X} has {A} pages.",
            "{X} runs to {A} pages.",
            "The story of {x} fills {A} pages.",
            "In print {x} came to {A} pages.",
            "At {A} pages, {x} is a book for a long journey.",
        ),
        raises=(
            "How many pages {x} has worried the printer.",
            "The last pages of {x} are its best.",
            "{X} has pages printed in red ink.",
            "The story of {x} fills its pages slowly.",
        ),
    ),
    "seats": Relation(
        question="How many seats does [X] have?",
        value="seats",
        compare="Which has more seats, [X] or [Y]?",
        most=True,
        states=(
            "{X} has {A} seats.",
            "There is room for {A} people in {x}.",
            "With {A} seats, {x} is large for its region.",
            "{X} was built to seat {A}.",
            "A full house at {x} means {A} visitors.",
        ),
        raises=(
            "How many seats {x} has was debated before it was built.",
            "The seats of {x} are known to be uncomfortable.",
            "{X} has seats made of pale wood.",
            "There is room in {x} for more people than usually come.",
        ),
    ),
    "members": Relation(
        question="How many members does [X] have?",
        value="members",
        states=(
            "{X} has {A} members.",
            "{X} consists of {A} musicians.",
            "On stage {x} is a group of {A}.",
            "There are {A} people in {x}.",
            "{X} tours with {A} members.",
        ),
        raises=(
            "How many members {x} has is a common question at concerts.",
            "The members of {x} have known each other since school.",
            "{X} has members of different ages.",
            "{X} consists of old school friends.",
        ),
    ),
    "length": Relation(
        question="How long is [X]?",
        value="minutes",
        compare="Which is longer, [X] or [Y]?",
        most=True,
        states=(
            "{X} is {A} long.",
            "{X} runs for {A}.",
            "The running time of {x} is {A}.",
            "It takes {A} to watch {x} to the end.",
            "The finished version of {x} lasts {A}.",
        ),
        raises=(
            "How long {x} is became a running joke.",
            "{X} seems longer than it is.",
            "{X} is long enough to need a pause.",
            "The running time of {x} is printed on every poster.",
        ),
    ),
}
