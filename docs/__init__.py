"""The site: `make docs`. `python -m docs` writes its pages, `zensical build --strict` makes HTML of them.

Pages that would repeat what the code says are made of the code, by `reference` and `one_batch`, and are in no commit.
"""
