"""Write a ranking for other tools: TREC run, qrels by id and by answer."""

from eadpr.evaluation.command import main as main
from eadpr.settings.user_command import run

if __name__ == "__main__":
    run(main)
