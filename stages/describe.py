"""Show tables of the collection and its relations: eadpr describe."""

from eadpr.settings.user_command import run
from eadpr.studies.describe import main

if __name__ == "__main__":
    run(main)
