"""Bring a collection's files in: eadpr add NAME --passages FILE --questions FILE, or NAME FOLDER."""

from eadpr.settings.add_command import main
from eadpr.settings.user_command import run

if __name__ == "__main__":
    run(main)
