"""Show tables of the collection, its relations and what the active arms took: eadpr describe."""

from eadpr.settings.command import run
from eadpr.studies.describe import main

if __name__ == "__main__":
    run(main)
