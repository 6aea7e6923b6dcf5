"""Publish an arm's training examples as a folder of `datasets`: eadpr publish-data eadpr --to FOLDER."""

from eadpr.publishing.command import publish_data as main
from eadpr.settings.command import run

if __name__ == "__main__":
    run(main)
