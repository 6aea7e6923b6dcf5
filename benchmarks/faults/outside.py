"""What would come in from outside: each is a test that shows the refusal, run and counted here."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.counts import Count, Outcome, Tally

ROOT = Path(__file__).resolve().parents[2]
# By what is tried, the tests.
TRIED = {
    "downloads that are another file, or do not end": (
        "tests/test_download.py::test_wrong_bytes_fail_with_both_hashes_and_are_not_kept",
        "tests/test_download.py::test_a_download_ends_at_its_pinned_size",
        "tests/test_download.py::test_a_pin_in_params_is_held_to_and_not_recorded",
    ),
    "archives that climb out, links among sources": (
        "tests/test_outside.py::test_nothing_of_an_archive_is_written",
        "tests/test_outside.py::test_a_link_among_documents_leads_to_no_file_elsewhere",
        "tests/test_faults_inputs.py::test_what_was_once_read_wrong_is_refused_in_a_line",
    ),
    "names with ;$(), .. and a leading dash": (
        "tests/test_bad_input.py::test_shell_characters_are_text_everywhere",
        "tests/test_own_files.py::test_names_that_cannot_be_folders_are_refused",
        "tests/test_prepare.py::test_settings_of_a_file_are_checked",
    ),
    "hostile checkpoints": (
        "tests/test_convert.py::test_code_in_a_checkpoint_is_refused_and_not_run",
        "tests/test_encoder.py::test_pickled_weights_are_refused",
        "tests/test_encoder.py::test_remote_code_is_not_run",
        "tests/test_pretrained.py::test_a_spoilt_folder_is_refused",
    ),
    "YAML with aliases, tags, brackets without end": (
        "tests/test_params.py::test_anchors_are_refused_because_dvc_loses_overrides_behind_them",
        "tests/test_params.py::test_broken_yaml_is_refused",
    ),
    "keys and passwords in logs, errors and the cache": (
        "tests/test_language_models.py::test_no_message_shows_the_key",
        "tests/test_language_models.py::test_the_key_is_written_nowhere",
        "tests/test_language_models.py::test_the_key_follows_no_redirect",
        "tests/test_language_models.py::test_a_key_that_no_header_can_hold_is_refused_without_being_shown",
        "tests/test_download.py::test_a_password_in_an_address_is_never_shown",
        "tests/test_prepare.py::test_what_is_said_of_an_address_leaves_its_password_out",
    ),
    "scripts in questions and passages": (
        "tests/test_explorer.py::test_the_same_inputs_give_the_same_bytes_and_no_script_ends_early",
    ),
}


def run(seed: int, folder: Path, share: float) -> list[Count]:
    """All of them, whatever the share."""
    ended = dict(_ended([node for nodes in TRIED.values() for node in nodes], folder))
    counts = []
    for kind, nodes in TRIED.items():
        tally = Tally(kind)
        for node in nodes:
            cases = [case for case in ended if case.partition("[")[0] == node]
            for case in cases:
                tally.add(ended[case], f"python -m pytest '{case}'")
            if not cases:
                tally.add("wrong", f"there is no test {node}")
        counts.append(tally.count())
    return counts


def _ended(nodes: list[str], folder: Path) -> Iterator[tuple[str, Outcome]]:
    """Each case of the tests, `clear` where it passed."""
    options = ("-rA", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'outside'}")
    command = [sys.executable, "-m", "pytest", *options]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run([*command, *nodes], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    for state, case in re.findall(r"(?m)^(PASSED|FAILED|ERROR) (tests/.+?)(?: - .*)?$", done.stdout):
        yield case, "clear" if state == "PASSED" else "wrong"
