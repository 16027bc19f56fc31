"""Lines of code in ``src/``, without docstrings, comments and blank lines: ``python tools/count_lines.py``."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "infinitask"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(path: Path) -> int:
    """The lines of a file that hold code."""
    text = path.read_text(encoding="utf-8")
    strings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - strings)


def main() -> int:
    """Print the lines of each folder and of all."""
    lines: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        lines[path.relative_to(SOURCE).parts[0]] += lines_of_code(path)
    for name, count in sorted(lines.items()):
        print(f"{count:>6}  {name}")
    print(f"{sum(lines.values()):>6}  in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
