"""Does every link within a built documentation lead to a page, a file or a heading? ``check_links.py FOLDER``."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and what can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag links to and what it is called."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken(folder: Path) -> list[str]:
    """A line for each link that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.relative_to(folder.resolve()).parts[0] in ("_modules", "_static"):  # made by Sphinx and the theme
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(folder.resolve())}: {link} is not there")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path.relative_to(folder.resolve())}: {link} has no such heading")
    return found


def main() -> None:
    """Say which links are broken; the exit status is 1 if there are any."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        raise SystemExit("Give the folder of the built documentation: check_links.py docs/_build/html")
    found = broken(Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
