"""Measure whether a model knows evidence: eadpr probe-model MODEL... --rows FILE."""

from eadpr.library.command import main as main
from eadpr.settings.user_command import run

if __name__ == "__main__":
    run(main)
