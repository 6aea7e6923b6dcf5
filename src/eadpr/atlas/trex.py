"""The questions of T-REx QA (Sciavolino et al., 2021) by relation, in the order of their numbers."""

from typing import Annotated

from pydantic import Field

QUESTIONS = {
    "P17": "Which country is [X] located in?",
    "P19": "Where was [X] born?",
    "P20": "Where did [X] die?",
    "P30": "Which continent is [X] located?",
    "P127": "Who owns [X]?",
    "P136": "What type of music does [X] play?",
    "P159": "Where is the headquarter of [X]?",
    "P176": "Which company is [X] produced by?",
    "P264": "What music label is [X] represented by?",
    "P276": "Where is [X] located?",
    "P407": "Which language was [X] written in?",
    "P413": "What position does [X] play?",
    "P495": "Which country was [X] created in?",
    "P740": "Where was [X] founded?",
}
Relation = Annotated[str, Field(pattern=rf"^({'|'.join(QUESTIONS)})$")]
