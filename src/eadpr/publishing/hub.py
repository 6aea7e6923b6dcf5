"""Folders to Hugging Face's Hub, or to the server that HF_ENDPOINT names."""

from pathlib import Path

import httpx2
from huggingface_hub import HfApi


def push(folder: Path, name: str, *, public: bool, kind: str = "model") -> str:
    """Upload a folder as one commit, in the place of what is there; returns its address. A repository that is made here
    is private unless `public`.

    Raises ValueError where the Hub refuses it, or has the repository as the other; the folder stays.
    """
    api = HfApi()
    try:
        made = api.create_repo(name, repo_type=kind, private=not public, exist_ok=True)
        if api.repo_info(name, repo_type=kind).private == public:
            found, other = ("private", "without") if public else ("public", "with")
            raise ValueError(
                f"--push {name}: it is there and {found}; change that on the Hub, or push {other} --public"
            )
        api.upload_folder(
            folder_path=folder,
            repo_id=name,
            repo_type=kind,
            commit_message="Published by eadpr",
            delete_patterns="*",  # vectors of an earlier model fit no other
        )
    except (OSError, httpx2.HTTPError) as error:  # of the Hub, or that nobody has signed in; of the way there
        said = " ".join(str(error).split())[:300]
        raise ValueError(
            f"--push {name}: {folder} was not uploaded ({said}); sign in with `hf auth login`, or upload it by hand"
        ) from error
    return str(made)
