"""List the pages of results and of benchmarks with the number of commits that touched their code since their figures.

``make stale-pages``, or ``python -m tools.stale_pages``. The newest pages come first. The last column counts from the
oldest figures of a page whose figures come from several runs, for instance because the peers were not run again.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.provenance import CODE, Provenance, read

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("docs/results", "docs/benchmarks")
OUTER = ("cli", "demo", "integrations", "persistence", "plotting", "report")
"""Parts of the library that move no figure of a page, unless the page names them."""


@dataclass(frozen=True)
class Page:
    """A page and the number of commits since its figures; None where the history does not hold their commit."""

    path: str
    provenance: Provenance | None
    age: int | None = None
    """All commits since the newest figures."""
    since: int | None = None
    """Those that touched the code."""
    since_oldest: int | None = None
    """The same since the oldest figures."""


def commits_since(root: Path, code: Sequence[str], commit: str) -> int | None:
    """The number of commits after this one that touched the code; None if the history does not hold the commit."""
    outer = [f":(exclude){path}/{name}" for path in code if path in CODE for name in OUTER]
    command = ["git", "rev-list", "--count", f"{commit}..HEAD", "--", *code, *outer]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None


def pages(root: Path = ROOT) -> list[Page]:
    """All pages, the newest first; those without a known age come last."""
    found = []
    for path in (path for folder in FOLDERS for path in sorted((root / folder).glob("*.md"))):
        name, provenance = path.relative_to(root).as_posix(), read(path.read_text(encoding="utf-8"))
        if provenance is None:
            found.append(Page(name, None))
            continue
        since = partial(commits_since, root, provenance.code)
        oldest = provenance.oldest or provenance.commit
        age = commits_since(root, ["."], provenance.commit)
        found.append(Page(name, provenance, age, since(provenance.commit), since(oldest)))
    return sorted(found, key=lambda page: (page.age is None, page.age, page.path))


def table(found: Sequence[Page]) -> str:
    """The pages, one in each line."""
    rows = [("page", "commit", "date", "commits since", "since the oldest figures")]
    for page in found:
        made = page.provenance
        if made is None:
            rows.append((page.path, "no provenance", "", "", ""))
        else:
            commit = made.commit + "+" * made.modified
            oldest = _count(page.since_oldest) if made.oldest else ""
            rows.append((page.path, commit, made.date, _count(page.since), oldest))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _count(commits: int | None) -> str:
    return "not in this history" if commits is None else str(commits)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args(arguments)
    print(table(pages()))


if __name__ == "__main__":
    main()
