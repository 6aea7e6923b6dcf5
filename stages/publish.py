"""Publish an arm as a folder that other libraries load: eadpr publish eadpr --to FOLDER."""

from eadpr.publishing.command import publish as main
from eadpr.settings.user_command import run

if __name__ == "__main__":
    run(main)
