"""Let a reader answer the evaluated questions from the passages, or paths, that a ranking gives them."""

from eadpr.settings.command import stage


@stage(ranking="C/rankings/{ranking}", reader="C/readers/{reader}", out="C/readings/{reader}/{ranking}")
def main(read, machine, *, records, ranking, reader, out):
    from eadpr.readers.answer import answer_questions

    count = answer_questions(records, ranking, reader, out, settings=read, hardware=machine)
    return f"read: {reader.name} answered {count:,} questions from {ranking.name}"
