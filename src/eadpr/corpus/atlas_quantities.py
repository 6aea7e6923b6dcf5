"""The atlas's own relations with dates and numbers, for questions with when and how."""

from __future__ import annotations

from eadpr.corpus.atlas_relation import Relation

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
            "The year in which {x} was born was remembered for its storms.",
            "{X} was born into a family of clockmakers.",
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
            "No letters about the founding of {x} have survived.",
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
            "The weeks before {x} was released were full of rumours.",
            "{X} was released without any advertising.",
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
            "Nobody had expected {x} to be published at all.",
            "The day when {x} was published had been kept secret.",
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
            "A song was composed for the day when {x} was opened.",
            "Few of those present when {x} was opened are still alive.",
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
            "The number of inhabitants of {x} has hardly changed.",
            "Fewer people live in {x} than visitors suppose.",
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
            "{X} looks higher than it is.",
            "Climbers have quarrelled about how high {x} really is.",
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
            "{X} had to let some of its employees go.",
            "The number of employees of {x} is a sore point.",
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
            "Some pages of {x} were lost in the post.",
            "The number of pages of {x} put off impatient readers.",
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
            "{X} is said to have more seats than visitors.",
            "The seats in {x} were given new covers.",
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
            "The members of {x} seldom give interviews.",
            "{X} asks its members to write down every idea.",
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
            "The length of {x} was a problem for cinemas.",
            "Some scenes of {x} were thought too long and were cut.",
        ),
    ),
}
