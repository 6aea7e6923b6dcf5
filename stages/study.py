"""Run a study of data/studies and write its page, as `eadpr study` does."""

from eadpr.settings.user_command import run
from eadpr.studies.command import main

if __name__ == "__main__":
    run(main)
