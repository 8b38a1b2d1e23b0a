"""Tidy: the rules of style that a machine can hold and the linter does not know, one small function per rule.

Rule: a rule is `SourceFile -> findings`, knows nothing of the others, and has a test that shows it can fail.
Must not know: what the code does. What ruff, mypy and import-linter hold is left to them.
Tests: tests/house/test_tidy.py
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE_FOLDERS = ("src", "tools", "bench", "tests")
PROSE_FOLDERS = ("docs", ".ci")
ROOT_SUFFIXES = (".md", ".toml", ".yaml", "")

FILE_LINES_MAX = 400
TEST_FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
EMPTY_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
# Rooms that decide or store: waiting happens above them.
ROOMS_WITHOUT_WAITING = {"broker", "config", "node", "protocol", "raft", "sim", "storage", "telemetry"}
ROOMS_WITHOUT_CHANCE = {"broker", "node", "protocol", "raft", "sim", "storage"}
# The one of them that starts from a seed, and so may make the random source that the others are given.
ROOM_WITH_A_SEED = "sim"

ROOM_FILE_DEPTH = len(("src", "tidings", "a_room", "a_module.py"))

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
WAIVER = re.compile(r"type:\s*ignore(?:\[[\w, -]+\])?|noqa(?::\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?")
PLACE_OF_ONE_MACHINE = re.compile(r"(?<![\w./])/(?:work|home|root|Users)/\w")
TEST_PATH = re.compile(r"tests/[\w./*\[\]-]*[\w*/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule, as compilers print it: where, and what to do."""

    path: Path
    line: int
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.advice}"


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file of the project: its path below the root, its text, and for Python what the text parses to."""

    path: Path
    text: str
    root: Path = ROOT

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    @property
    def is_test(self) -> bool:
        return self.path.parts[0] == "tests"

    @property
    def room(self) -> str | None:
        """The room of a module in src/tidings/; None elsewhere."""
        parts = self.path.with_suffix("").parts
        return parts[2] if parts[:2] == ("src", "tidings") and parts[2:] != ("__init__",) else None

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def comment_by_line(self) -> dict[int, str]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}

    def finding(self, line: int, advice: str) -> Finding:
        return Finding(path=self.path, line=line, advice=advice)


def file_is_short(file: SourceFile) -> Iterator[Finding]:
    lines_max = TEST_FILE_LINES_MAX if file.is_test else FILE_LINES_MAX
    line_count = len(file.text.splitlines())
    if line_count > lines_max:
        yield file.finding(lines_max + 1, f"{line_count} lines, at most {lines_max}: split by responsibility")


def functions_are_short(file: SourceFile) -> Iterator[Finding]:
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            line_count = (node.end_lineno or node.lineno) - node.lineno + 1
            if line_count > FUNCTION_LINES_MAX:
                advice = f"{node.name} has {line_count} lines, at most {FUNCTION_LINES_MAX}: name its parts"
                yield file.finding(node.lineno, advice)


def module_has_an_opener(file: SourceFile) -> Iterator[Finding]:
    if file.tree.body and ast.get_docstring(file.tree) is None:
        yield file.finding(1, "no docstring: say what the module is, its one rule, what it must not know")


def module_has_a_telling_name(file: SourceFile) -> Iterator[Finding]:
    empty = EMPTY_NAMES.intersection(file.path.with_suffix("").parts)
    if empty:
        yield file.finding(1, f"'{empty.pop()}' says nothing: name the module for what it holds")


def module_names_its_tests(file: SourceFile) -> Iterator[Finding]:
    """`Tests:` in the opener, then paths or patterns that exist; a package inside a room names its own."""
    if (file.room is None and file.path.parts[0] != "tools") or file.path.name == "__init__.py":
        return
    paths = tests_named_by(file.tree)
    if not paths and len(file.path.parts) > ROOM_FILE_DEPTH:
        package = file.root / file.path.with_name("__init__.py")
        paths = tests_named_by(ast.parse(package.read_text(encoding="utf-8"))) if package.exists() else []
    if not paths:
        yield file.finding(1, "the docstring ends with 'Tests: tests/...', so that a reader finds them")
    for path in paths:
        if not any(file.root.glob(path)):
            yield file.finding(1, f"the tests it names do not exist: {path}")


def work_is_finished(file: SourceFile) -> Iterator[Finding]:
    for line, comment in file.comment_by_line.items():
        unfinished = UNFINISHED.search(comment)
        if unfinished:
            yield file.finding(line, f"{unfinished[0]}: finish it, or leave it out and say so in the docs")


def waivers_carry_a_reason(file: SourceFile) -> Iterator[Finding]:
    for line, comment in file.comment_by_line.items():
        if WAIVER.search(comment) and not says_something(comment):
            yield file.finding(line, "a waiver of the linter or the type checker says why on its line")


def any_carries_a_reason(file: SourceFile) -> Iterator[Finding]:
    for node in file.nodes:
        by_name = isinstance(node, ast.Name) and node.id == "Any"
        by_attribute = isinstance(node, ast.Attribute) and node.attr == "Any"
        if (by_name or by_attribute) and not says_something(file.comment_by_line.get(line_of(node), "")):
            yield file.finding(line_of(node), "Any says why on its line, or names the type")


def broad_except_carries_a_reason(file: SourceFile) -> Iterator[Finding]:
    for node in file.nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        broad = any(
            kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))
            for kind in caught
        )
        if broad and not says_something(file.comment_by_line.get(node.lineno, "")):
            advice = "a broad except stands at the top of a task only, and says why on its line"
            yield file.finding(node.lineno, advice)


def only_waiting_rooms_are_async(file: SourceFile) -> Iterator[Finding]:
    if file.room in ROOMS_WITHOUT_WAITING:
        for node in file.nodes:
            if isinstance(node, ast.AsyncFunctionDef):
                advice = f"nothing waits in '{file.room}': return the work and let the runtime do it"
                yield file.finding(node.lineno, advice)


def chance_is_passed_in(file: SourceFile) -> Iterator[Finding]:
    """Where the same seed must replay the same run, `random` is the type of an argument and nothing else."""
    if file.room not in ROOMS_WITHOUT_CHANCE:
        return
    for node in file.nodes:
        drawn = isinstance(node, ast.Attribute) and names(node.value, "random") and node.attr != "Random"
        made = isinstance(node, ast.Call) and (
            dotted_name(node.func) in ("random.Random", "Random") and file.room != ROOM_WITH_A_SEED
        )
        imported = isinstance(node, ast.ImportFrom) and node.module == "random"
        taken = imported and any(alias.name != "Random" for alias in imported_names(node))
        if drawn or made or taken:
            yield file.finding(
                line_of(node), "a random source is passed in as random.Random, never made here"
            )


def tests_neither_sleep_nor_mock(file: SourceFile) -> Iterator[Finding]:
    if not file.is_test:
        return
    for node in file.nodes:
        for module in imported_modules(node):
            if module == "time.sleep":
                yield file.finding(
                    line_of(node), "a test waits for a condition with a deadline, never sleeps"
                )
            if module == "mock" or module.startswith("unittest.mock"):
                yield file.finding(line_of(node), "a fake in tests/fakes/ instead of a mock")
        if isinstance(node, ast.Attribute) and dotted_name(node) == "time.sleep":
            yield file.finding(node.lineno, "a test waits for a condition with a deadline, never sleeps")


def no_place_of_one_machine(file: SourceFile) -> Iterator[Finding]:
    for line, text in enumerate(file.text.splitlines(), start=1):
        if PLACE_OF_ONE_MACHINE.search(text):
            yield file.finding(
                line, "a path of one machine: take it from an argument or from the project's root"
            )


Rule = Callable[[SourceFile], Iterator[Finding]]
RULES_FOR_PYTHON: tuple[Rule, ...] = (
    file_is_short,
    functions_are_short,
    module_has_an_opener,
    module_has_a_telling_name,
    module_names_its_tests,
    work_is_finished,
    waivers_carry_a_reason,
    any_carries_a_reason,
    broad_except_carries_a_reason,
    only_waiting_rooms_are_async,
    chance_is_passed_in,
    tests_neither_sleep_nor_mock,
)
RULES_FOR_ALL: tuple[Rule, ...] = (no_place_of_one_machine,)


def tests_named_by(tree: ast.Module) -> list[str]:
    """The paths and patterns behind `Tests:` in a module's docstring."""
    _, _, named = (ast.get_docstring(tree) or "").partition("Tests:")
    return TEST_PATH.findall(named)


def says_something(comment: str) -> bool:
    """Whether words are left in a comment once the waivers themselves are taken out."""
    return re.search(r"[a-zA-Z]{2}", WAIVER.sub("", comment)) is not None


def names(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def dotted_name(node: ast.AST) -> str:
    """`time.sleep` for the expression that reads so; empty for anything more involved."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported_names(node: ast.AST) -> list[ast.alias]:
    return node.names if isinstance(node, ast.Import | ast.ImportFrom) else []


def imported_modules(node: ast.AST) -> list[str]:
    """What an import statement brings in, by full name; nothing for other statements."""
    prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
    return [prefix + alias.name for alias in imported_names(node)]


def line_of(node: ast.AST) -> int:
    line: int = getattr(node, "lineno", 1)
    return line


def findings_in(file: SourceFile) -> Iterator[Finding]:
    """What every rule that fits the file has to say about it."""
    if file.is_python:
        try:
            compile(file.text, str(file.path), "exec", dont_inherit=True)
        except SyntaxError as error:
            yield file.finding(error.lineno or 1, f"this Python cannot read it: {error.msg}")
            return
    for rule in (*RULES_FOR_PYTHON, *RULES_FOR_ALL) if file.is_python else RULES_FOR_ALL:
        yield from rule(file)


def project_files(root: Path) -> Iterator[SourceFile]:
    """The project's own files: code, prose and settings, without what tools leave behind."""
    code = (path for folder in CODE_FOLDERS for path in (root / folder).rglob("*.py"))
    prose = (path for folder in PROSE_FOLDERS for path in (root / folder).rglob("*"))
    settings = (path for path in root.iterdir() if path.suffix in ROOT_SUFFIXES and path.name[0] != ".")
    for path in sorted({*code, *prose, *settings}):
        if path.is_file() and "__pycache__" not in path.parts:
            yield SourceFile(path=path.relative_to(root), text=path.read_text(encoding="utf-8"), root=root)


def main(arguments: Sequence[str]) -> int:
    """`python -m tools.tidy` prints what is untidy, one line each, and fails if there is anything."""
    if arguments:
        print("usage: python -m tools.tidy", file=sys.stderr)
        return 2
    findings = [finding for file in project_files(ROOT) for finding in findings_in(file)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
