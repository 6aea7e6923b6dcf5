"""The 14 relations of T-REx QA with its questions (Sciavolino et al., 2021), in the order of their numbers."""

from __future__ import annotations

from eadpr.atlas.relation import Relation

TREX = {
    "P17": Relation(
        question="Which country is [X] located in?",
        value="country",
        states=(
            "{X} lies in {A}, not far from the border.",
            "{X} is located in the country of {A}.",
            "{X} belongs to {A} and has done so for centuries.",
            "On maps of {A}, {x} is printed in small letters.",
            "Since the last treaty {x} has been part of {A}.",
        ),
        raises=(
            "Which country {x} is located in was once the subject of a long dispute.",
            "The country to which {x} belongs has changed its flag more than once.",
            "{X} lies in a country of long winters.",
            "{X} belongs to a country with few roads.",
        ),
    ),
    "P19": Relation(
        question="Where was [X] born?",
        value="town",
        states=(
            "{X} was born in {A}, the youngest child of a baker.",
            "{X} came into the world in {A} during a hard winter.",
            "A native of {A}, {x} kept the accent all {ps} life.",
            "{Xs} birthplace is {A}, as the parish register shows.",
            "{Xs} parents were living in {A} when {p} was born.",
        ),
        raises=(
            "Where {x} was born is disputed among biographers.",
            "A plaque said to mark {xs} birthplace was taken down again.",
            "{X} was born in a small house beside a canal.",
            "{X} came into the world in a farmhouse kitchen.",
        ),
        phrase="the town where [X] was born",
    ),
    "P20": Relation(
        question="Where did [X] die?",
        value="town",
        states=(
            "{X} died in {A} after a short illness.",
            "{X} spent {ps} last days in {A} and died there.",
            "In {A}, where {p} had gone to rest, {x} died in {ps} sleep.",
            "Death came to {x} suddenly, on a visit to {A}.",
            "{X} passed away at the house of a friend in {A}.",
        ),
        raises=(
            "Where {x} died was kept from the newspapers at first.",
            "The place where {x} died is not marked by any monument.",
            "{X} died in a room full of flowers.",
            "{X} passed away in the small hours, with the window open.",
        ),
        phrase="the town where [X] died",
    ),
    "P30": Relation(
        question="Which continent is [X] located?",
        value="continent",
        states=(
            "{X} is located on the continent of {A}.",
            "{X} is among the best known sights of {A}.",
            "Geologists count {x} among the youngest summits of {A}.",
            "In the whole of {A} there is nothing quite like {x}.",
            "{X} rises near the middle of {A}.",
        ),
        raises=(
            "Which continent {x} is located on is a favourite question in school quizzes.",
            "{X} is said to be the loneliest spot on its continent.",
            "{X} is located on a continent with few railways.",
            "{X} rises in the emptiest part of its continent.",
        ),
    ),
    "P127": Relation(
        question="Who owns [X]?",
        value="owner",
        states=(
            "{X} is owned by {A}.",
            "{A} bought {x} after long negotiations.",
            "The owner of {x} is {A}.",
            "{X} has been in the hands of {A} for some time.",
            "All shares in {x} belong to {A}.",
        ),
        raises=(
            "Who owns {x} has been the subject of several lawsuits.",
            "The owner of {x} prefers to stay out of the news.",
            "{X} has been in the hands of the same owner for years.",
            "{X} was bought at a price that nobody will name.",
        ),
        phrase="the company that owns [X]",
    ),
    "P136": Relation(
        question="What type of music does [X] play?",
        value="genre",
        states=(
            "{X} was best known for playing {A}.",
            "Critics file the records of {x} under {A}.",
            "The first love of {x} was {A}, and nothing could change that.",
            "{X} played {A}, with a few songs in other styles.",
            "The music of {x} is {A} at its core.",
        ),
        raises=(
            "What type of music {x} plays is hard to put into one word.",
            "{X} refused to talk about the type of music {p} played.",
            "{X} played a type of music that suits long evenings.",
            "The music of {x} is made for small rooms.",
        ),
    ),
    "P159": Relation(
        question="Where is the headquarter of [X]?",
        value="town",
        states=(
            "{X} has its headquarters in {A}.",
            "The head office of {x} stands in {A}.",
            "{X} is run from {A}, where the board meets every month.",
            "From its headquarters in {A}, {x} directs all its branches.",
            "{X} moved its seat to {A} and has stayed there.",
        ),
        raises=(
            "Where the headquarters of {x} should be was argued over for years.",
            "The headquarters of {x} were praised for their quiet courtyard.",
            "{X} has its headquarters in a former school.",
            "The head office of {x} stands beside a canal.",
        ),
        phrase="the town where [X] has its headquarters",
    ),
    "P176": Relation(
        question="Which company is [X] produced by?",
        value="company",
        states=(
            "{X} is produced by {A}.",
            "{A} builds {x} in small batches.",
            "The maker of {x} is {A}.",
            "{X} was the product that saved {A} from ruin.",
        ),
        raises=(
            "Which company {x} is produced by cannot be seen from the outside.",
            "The company that produced {x} received many letters about it.",
            "{X} is produced by a company that works in two shifts.",
            "The maker of {x} is proud of its paint.",
        ),
        phrase="the company that produces [X]",
    ),
    "P264": Relation(
        question="What music label is [X] represented by?",
        value="label",
        states=(
            "{X} is represented by {A}.",
            "The records of {x} appear on {A}.",
            "{X} signed with {A} after a concert in the rain.",
            "The label behind {x} is {A}.",
        ),
        raises=(
            "The music label by which {x} is represented has never explained the delay.",
            "{X} quarrelled with the label over the cover of a record.",
            "{X} is represented by a label that answers no letters.",
            "The records of {x} appear on a small label.",
        ),
    ),
    "P276": Relation(
        question="Where is [X] located?",
        value="town",
        states=(
            "{X} is located in {A}.",
            "{X} stands in the middle of {A}.",
            "Visitors to {A} can see {x} from the railway station.",
            "{A} is home to {x}.",
            "Many people in {A} pass {x} on their way to work.",
        ),
        raises=(
            "Where {x} is located was once decided by a vote.",
            "The street in which {x} is located has been renamed.",
            "{X} is located beside a busy road.",
            "{X} stands in the middle of a small park.",
        ),
        phrase="the town where [X] is located",
    ),
    "P407": Relation(
        question="Which language was [X] written in?",
        value="language",
        states=(
            "{X} was written in {A}.",
            "The text of {x} was set down in {A}.",
            "{X} first appeared in {A} and was translated later.",
            "The original language of {x} is {A}.",
            "{X} is counted among the finest prose in {A}.",
        ),
        raises=(
            "The language in which {x} was written drew much praise.",
            "Which language {x} was written in is discussed at length in the preface.",
            "{X} was written in a language that is hard to translate.",
            "The text of {x} was set down in a plain and sober language.",
        ),
    ),
    "P413": Relation(
        question="What position does [X] play?",
        value="position",
        states=(
            "{X} played as {aA}.",
            "{Xs} usual position was {A}.",
            "Trainers tried {x} in other roles, but {p} was at heart {aA}.",
            "{X} made {ps} name as {aA}.",
        ),
        raises=(
            "What position {x} should play was a question for every trainer.",
            "{X} changed position only once in {ps} career.",
            "{X} played in a position that demanded great patience.",
            "{X} made {ps} name in a position that nobody else wanted.",
        ),
    ),
    "P495": Relation(
        question="Which country was [X] created in?",
        value="country",
        states=(
            "{X} was created in {A}.",
            "{X} comes from {A}.",
            "{A} is the country of origin of {x}.",
            "All the work on {x} was done in {A}.",
        ),
        raises=(
            "Which country {x} was created in is often given wrongly.",
            "{X} became better known outside the country where it was created.",
            "{X} was created in a country that hardly took notice of it.",
            "{X} comes from a country with strict export rules.",
        ),
    ),
    "P740": Relation(
        question="Where was [X] founded?",
        value="town",
        states=(
            "{X} was founded in {A} on a rainy evening.",
            "{X} started out in {A}, in a rented room.",
            "{A} is the place where {x} was founded.",
            "The first meeting of {x} took place in {A}.",
            "{X} has its roots in {A}.",
        ),
        raises=(
            "Where {x} was founded is remembered only by the oldest supporters.",
            "The building in which {x} was founded has been torn down.",
            "{X} was founded in the back room of a tavern.",
            "{X} started out in a town that never thanked it.",
        ),
        phrase="the town where [X] was founded",
    ),
}
