"""Measure the source: ``python tools/count_lines.py``.

Lines of code (without docstrings, comments and blank lines), named numeric constants and public names, for each folder
of ``src/infinitask``. A constant is a name in capitals at the top of a module whose value holds a number; a public name
is one in the ``__all__`` of a module without a leading underscore in its path.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
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


def assigned(node: ast.stmt) -> tuple[list[str], ast.expr | None]:
    """The names that a statement assigns to, and the value."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names, getattr(node, "value", None)


def constants(path: Path) -> list[str]:
    """The named numeric constants of a file."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names, value = assigned(node)
        numbers = value is not None and any(
            isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in ast.walk(value)
        )
        found += [name for name in names if numbers and name.lstrip("_").isupper()]
    return found


def public_names(path: Path) -> list[str]:
    """The names that a public file offers."""
    parts = path.relative_to(SOURCE).parts
    if any(part.startswith("_") and part != "__init__.py" for part in parts):
        return []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names, value = assigned(node)
        if names == ["__all__"] and isinstance(value, (ast.List, ast.Tuple)):
            return list(ast.literal_eval(value))
    return []


def main() -> int:
    """Print the counts of each folder and of all."""
    files: dict[str, list[Path]] = {}
    for path in SOURCE.rglob("*.py"):
        files.setdefault(path.relative_to(SOURCE).parts[0], []).append(path)
    print(f"{'lines':>6} {'constants':>9} {'public':>6}")
    total, numbers, offered = 0, 0, set()
    for name, paths in sorted(files.items()):
        lines, count = sum(map(lines_of_code, paths)), sum(len(constants(path)) for path in paths)
        names = {public for path in paths for public in public_names(path)}
        print(f"{lines:>6} {count:>9} {len(names):>6}  {name}")
        total, numbers, offered = total + lines, numbers + count, offered | names
    print(f"{total:>6} {numbers:>9} {len(offered):>6}  in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
