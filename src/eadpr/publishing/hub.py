"""Upload of folders to Hugging Face's Hub, or to the server that HF_ENDPOINT names."""

from pathlib import Path

import httpx2
from huggingface_hub import HfApi


def push(folder: Path, name: str, *, public: bool, kind: str = "model") -> str:
    """Upload a folder as one commit, which replaces all files there, and return the repository's address.

    A new repository is private unless `public`. Raises ValueError if the Hub refuses it, or if the repository exists
    with the other visibility; the folder stays.
    """
    api = HfApi()
    try:
        address = api.create_repo(name, repo_type=kind, private=not public, exist_ok=True)
        if api.repo_info(name, repo_type=kind).private == public:
            present, option = ("private", "without") if public else ("public", "with")
            raise ValueError(
                f"--push {name}: it is there and {present}; change that on the Hub, or push {option} --public"
            )
        api.upload_folder(
            folder_path=folder,
            repo_id=name,
            repo_type=kind,
            commit_message="Published by eadpr",
            delete_patterns="*",  # vectors of an earlier model fit no other
        )
    except (OSError, httpx2.HTTPError) as error:  # the Hub's refusal, no sign-in, or the network
        reason = " ".join(str(error).split())[:300]
        raise ValueError(
            f"--push {name}: {folder} was not uploaded ({reason}); sign in with `hf auth login`, or upload it by hand"
        ) from error
    return str(address)
