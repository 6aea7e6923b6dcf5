"""The atlas's own relations with people and things, for questions with who, what and which."""

from __future__ import annotations

from eadpr.atlas.relation import Relation

WHO = {
    "mayor": Relation(
        question="Who is the mayor of [X]?",
        value="mayor",
        phrase="the mayor of [X]",
        states=(
            "The mayor of {x} is {A}.",
            "{A} was elected mayor of {x}.",
            "{X} is governed by {A}.",
            "{A} holds the office of mayor in {x}.",
            "Voters in {x} chose {A} as mayor.",
        ),
        raises=(
            "Who is the mayor of {x} depends on a close vote every time.",
            "The mayor of {x} lives above the town hall.",
            "The mayor of {x} is a keen cyclist.",
            "{X} is governed by a mayor with little money.",
        ),
    ),
    "director": Relation(
        question="Who directed [X]?",
        value="director",
        phrase="the director of [X]",
        states=(
            "{X} was directed by {A}.",
            "The director of {x} is {A}.",
            "{A} directed {x} with a small crew.",
            "Behind the camera of {x} stood {A}.",
            "{X} is the work of {A}, who also cut it.",
        ),
        raises=(
            "Who directed {x} was kept secret during the filming.",
            "The director of {x} fell ill during the work.",
            "{X} was directed by a person of few words.",
            "Behind the camera of {x} stood a beginner.",
        ),
    ),
    "author": Relation(
        question="Who wrote [X]?",
        value="author",
        phrase="the author of [X]",
        states=(
            "{X} was written by {A}.",
            "The author of {x} is {A}.",
            "{A} wrote {x} within a single summer.",
            "{X} came from the pen of {A}.",
            "{X} is the best known book by {A}.",
        ),
        raises=(
            "Who wrote {x} was a riddle to its first readers.",
            "The author of {x} lived from other work.",
            "{X} was written by a person who knew the sea.",
            "{X} came from the pen of a slow and careful author.",
        ),
    ),
    "designer": Relation(
        question="Who designed [X]?",
        value="designer",
        phrase="the designer of [X]",
        states=(
            "{X} was designed by {A}.",
            "The designer of {x} is {A}.",
            "{A} drew the plans for {x}.",
            "The design of {x} goes back to {A}.",
            "The idea for {x} was born at the desk of {A}.",
        ),
        raises=(
            "Who designed {x} was forgotten for years.",
            "The designer of {x} was never paid in full.",
            "{X} was designed by a person in a hurry.",
            "The designer of {x} is said to have worked at night.",
        ),
    ),
    "founder": Relation(
        question="Who founded [X]?",
        value="founder",
        phrase="the founder of [X]",
        states=(
            "{X} was founded by {A}.",
            "The founder of {x} is {A}.",
            "{A} founded {x} with borrowed money.",
            "{X} was set up by {A}.",
            "It was {A} who brought {x} into being.",
        ),
        raises=(
            "Who founded {x} is told in a short film for visitors.",
            "The founder of {x} left after a quarrel.",
            "{X} was founded by a person with more hope than money.",
            "The founder of {x} is shown on a portrait in the lobby.",
        ),
    ),
    "coach": Relation(
        question="Who coaches [X]?",
        value="coach",
        phrase="the coach of [X]",
        states=(
            "{X} is coached by {A}.",
            "The coach of {x} is {A}.",
            "{A} has coached {x} for several seasons.",
            "The players of {x} are trained by {A}.",
            "{X} put {A} in charge of the side.",
        ),
        raises=(
            "Who coaches {x} is always a topic in the local papers.",
            "The coach of {x} is known for loud speeches.",
            "{X} is coached by a person known for loud speeches.",
            "The coach of {x} is a heavy smoker.",
        ),
    ),
}

WHAT = {
    "instrument": Relation(
        question="What instrument does [X] play?",
        value="instrument",
        states=(
            "{X} played the {A}.",
            "{Xs} instrument was the {A}.",
            "{X} learned the {A} from an uncle.",
            "On stage {x} was never seen without the {A}.",
            "{X} was a master of the {A}.",
        ),
        raises=(
            "The instrument that {x} played was a gift.",
            "{X} once left {ps} instrument on a train.",
            "{X} played an instrument that had been a gift.",
            "{X} learned the instrument in a church cellar.",
        ),
    ),
    "prize": Relation(
        question="What prize did [X] win?",
        value="prize",
        states=(
            "{X} won the {A}.",
            "{X} was awarded the {A}.",
            "The {A} went to {x}, to general applause.",
            "For {ps} work {x} received the {A}.",
            "The jury of the {A} chose {x}.",
        ),
        raises=(
            "What prize {x} won came as a surprise to {ps} friends.",
            "The prize that {x} won came with no money.",
            "{X} won a prize that came with no money.",
            "{X} was awarded a prize in a half-empty hall.",
        ),
    ),
    "team": Relation(
        question="Which team did [X] play for?",
        value="team",
        phrase="the team that [X] played for",
        states=(
            "{X} played for {A}.",
            "{X} spent {ps} whole career with {A}.",
            "{A} signed {x} as a teenager.",
            "{X} wore the shirt of {A}.",
            "Supporters of {A} still sing about {x}.",
        ),
        raises=(
            "Which team {x} played for is often mixed up.",
            "The team that {x} played for won little.",
            "{X} played for a team that won little.",
            "{X} wore the shirt of the same team for years.",
        ),
    ),
    "university": Relation(
        question="Which university did [X] attend?",
        value="university",
        states=(
            "{X} attended {A}.",
            "{X} studied at {A}.",
            "{X} took a degree at {A}.",
            "{A} counts {x} among its former students.",
            "In {ps} youth {x} was a student at {A}.",
        ),
        raises=(
            "Which university {x} attended is not mentioned in {ps} memoirs.",
            "{X} disliked the university {p} attended.",
            "{X} attended a university with a famous library.",
            "{X} studied at a university far from home.",
        ),
    ),
}
