"""Tidy holds the rules of style: each rule is shown to fail, and to pass what it should."""

from pathlib import Path
from textwrap import dedent

import pytest

from tools import tidy


def module(path: str, text: str = "") -> tidy.SourceFile:
    return tidy.SourceFile(path=Path(path), text=dedent(text))


def lines_found(rule: tidy.Rule, path: str, text: str) -> list[int]:
    return [finding.line for finding in rule(module(path, text))]


@pytest.mark.parametrize(
    ("path", "lines_max"),
    [("src/tidings/raft/a.py", 400), ("bench/a.py", 400), ("tests/raft/test_a.py", 600)],
)
def test_a_file_has_its_longest_length_and_not_a_line_more(path: str, lines_max: int) -> None:
    assert lines_found(tidy.file_is_short, path, "x = 1\n" * lines_max) == []
    assert lines_found(tidy.file_is_short, path, "x = 1\n" * (lines_max + 1)) == [lines_max + 1]


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_has_its_longest_length_and_not_a_line_more(keyword: str) -> None:
    longest = f"\n{keyword} f():\n" + "    pass\n" * (tidy.FUNCTION_LINES_MAX - 1)

    assert lines_found(tidy.functions_are_short, "tools/a.py", longest) == []
    assert lines_found(tidy.functions_are_short, "tools/a.py", longest + "    pass\n") == [2]


def test_a_module_opens_with_a_docstring() -> None:
    assert lines_found(tidy.module_has_an_opener, "tools/a.py", "x = 1\n") == [1]
    assert lines_found(tidy.module_has_an_opener, "tools/a.py", '"""What it is."""\nx = 1\n') == []


def test_an_empty_module_needs_no_docstring() -> None:
    assert lines_found(tidy.module_has_an_opener, "src/tidings/raft/__init__.py", "") == []


@pytest.mark.parametrize(
    "path", ["src/tidings/raft/utils.py", "src/tidings/helpers/a.py", "tests/manager.py"]
)
def test_a_module_name_that_says_nothing_is_found(path: str) -> None:
    assert lines_found(tidy.module_has_a_telling_name, path, "") == [1]


def test_a_noun_of_the_domain_is_a_good_module_name() -> None:
    assert lines_found(tidy.module_has_a_telling_name, "src/tidings/raft/election.py", "") == []


@pytest.mark.parametrize("path", ["src/tidings/raft/a.py", "src/tidings/config.py", "tools/a.py"])
def test_a_module_names_its_tests(path: str) -> None:
    assert lines_found(tidy.module_names_its_tests, path, '"""What it is."""') == [1]
    assert lines_found(tidy.module_names_its_tests, path, '"""Tests: tests/house/test_tidy.py"""') == []
    assert (
        lines_found(tidy.module_names_its_tests, path, '"""Tests: tests/house, tests/h*/test_*.py."""') == []
    )


def test_named_tests_that_do_not_exist_are_found() -> None:
    opener = '"""What it is. Tests: tests/house/test_tidy.py, tests/house/test_nothing.py."""'

    assert lines_found(tidy.module_names_its_tests, "tools/a.py", opener) == [1]


def test_a_package_inside_a_room_speaks_for_its_modules_if_it_names_tests(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_messages.py").touch()
    package = tmp_path / "src" / "tidings" / "protocol" / "messages"
    package.mkdir(parents=True)
    fetch = tidy.SourceFile(
        path=Path("src/tidings/protocol/messages/fetch.py"), text='"""Fetch."""', root=tmp_path
    )

    (package / "__init__.py").write_text('"""Messages. Tests: tests/test_messages*.py"""')
    named = list(tidy.module_names_its_tests(fetch))
    (package / "__init__.py").write_text('"""Messages."""')
    unnamed = list(tidy.module_names_its_tests(fetch))

    assert named == []
    assert len(unnamed) == 1


@pytest.mark.parametrize("path", ["tests/house/test_a.py", "bench/a.py", "src/tidings/__init__.py"])
def test_what_is_no_room_and_no_tool_names_no_tests(path: str) -> None:
    assert lines_found(tidy.module_names_its_tests, path, '"""What it is."""') == []


@pytest.mark.parametrize("word", ["TODO", "FIXME", "XXX", "HACK"])
def test_unfinished_work_is_found_in_comments(word: str) -> None:
    assert lines_found(tidy.work_is_finished, "tools/a.py", f"x = 1\ny = 2  # {word}: later\n") == [2]


def test_unfinished_work_is_a_comment_and_no_value() -> None:
    assert (
        lines_found(tidy.work_is_finished, "tools/a.py", "x = 'TODO'  # the word in a client's answer\n")
        == []
    )


@pytest.mark.parametrize(
    "waiver", ["type: ignore", "type: ignore[arg-type, misc]", "noqa", "noqa: BLE001", "noqa: E501, T201"]
)
def test_a_waiver_says_why(waiver: str) -> None:
    rule = tidy.waivers_carry_a_reason

    assert lines_found(rule, "tools/a.py", f"f()  # {waiver}\n") == [1]
    assert lines_found(rule, "tools/a.py", f"f()  # {waiver} - the library ships no types\n") == []
    assert lines_found(rule, "tools/a.py", f"f()  # {waiver}  # the library ships no types\n") == []


def test_one_waiver_is_no_reason_for_another() -> None:
    found = lines_found(
        tidy.waivers_carry_a_reason, "tools/a.py", "f()  # type: ignore[misc]  # noqa: E501\n"
    )

    assert found == [1]


@pytest.mark.parametrize("name", ["Any", "typing.Any"])
def test_any_says_why(name: str) -> None:
    rule = tidy.any_carries_a_reason

    assert lines_found(rule, "tools/a.py", f"from typing import Any\nx: list[{name}] = []\n") == [2]
    assert lines_found(rule, "tools/a.py", f"x: {name} = f()  # the library ships no types\n") == []


@pytest.mark.parametrize(
    "caught", ["", " Exception", " BaseException", " (OSError, Exception)", " Exception as e"]
)
def test_a_broad_except_says_why(caught: str) -> None:
    rule = tidy.broad_except_carries_a_reason
    reason = "noqa: BLE001 top of the task: logged, then it stops"

    assert lines_found(rule, "tools/a.py", f"try:\n    f()\nexcept{caught}:\n    g()\n") == [3]
    assert lines_found(rule, "tools/a.py", f"try:\n    f()\nexcept{caught}:  # noqa: BLE001\n    g()\n") == [
        3
    ]
    assert lines_found(rule, "tools/a.py", f"try:\n    f()\nexcept{caught}:  # {reason}\n    g()\n") == []


def test_a_narrow_except_needs_no_reason() -> None:
    text = "try:\n    f()\nexcept (OSError, ValueError):\n    g()\n"

    assert lines_found(tidy.broad_except_carries_a_reason, "tools/a.py", text) == []


def test_only_rooms_that_may_wait_are_async() -> None:
    rule = tidy.only_waiting_rooms_are_async

    assert lines_found(rule, "src/tidings/broker/produce.py", "async def f(): ...\n") == [1]
    assert lines_found(rule, "src/tidings/runtime/listener.py", "async def f(): ...\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "random.randint(1, 6)",
        "random.Random(7)",
        "Random(7)",
        "from random import choice",
        "delay = random.random",
    ],
)
def test_a_room_that_decides_draws_nothing_by_itself(text: str) -> None:
    assert lines_found(tidy.chance_is_passed_in, "src/tidings/raft/election.py", text) == [1]


def test_a_random_source_may_be_passed_in() -> None:
    text = """
        import random
        from random import Random

        def delay(chance: random.Random, other: Random) -> float:
            return chance.random() + other.random()
    """

    assert lines_found(tidy.chance_is_passed_in, "src/tidings/raft/election.py", text) == []


def test_the_simulator_alone_starts_from_a_seed() -> None:
    assert lines_found(tidy.chance_is_passed_in, "src/tidings/sim/world.py", "random.Random(seed)") == []
    assert lines_found(tidy.chance_is_passed_in, "src/tidings/sim/world.py", "random.random()") == [1]


@pytest.mark.parametrize(
    "text",
    [
        "time.sleep(1)",
        "from time import monotonic, sleep",
        "import unittest.mock",
        "from unittest import mock",
        "from unittest.mock import Mock",
        "import mock",
    ],
)
def test_a_test_neither_sleeps_nor_mocks(text: str) -> None:
    assert lines_found(tidy.tests_neither_sleep_nor_mock, "tests/raft/test_a.py", text) == [1]
    assert lines_found(tidy.tests_neither_sleep_nor_mock, "tools/a.py", text) == []


@pytest.mark.parametrize("folder", ["work", "home", "root", "Users"])
def test_a_path_of_one_machine_is_found_in_code_and_prose(folder: str) -> None:
    place = f"/{folder}/anna/tidings"

    assert lines_found(tidy.no_place_of_one_machine, "docs/a.md", f"Go there:\n`cd {place}`\n") == [2]
    assert lines_found(tidy.no_place_of_one_machine, "tools/a.py", f"HERE = '{place}'\n") == [1]


@pytest.mark.parametrize(
    "place", ["docs/work/plan.md", "https://host/home/page", "$HOME/root", "/var/lib/tidings"]
)
def test_a_path_that_any_machine_has_is_fine(place: str) -> None:
    assert lines_found(tidy.no_place_of_one_machine, "docs/a.md", place) == []


def test_a_finding_reads_as_compilers_print_it() -> None:
    finding = tidy.Finding(path=Path("src/a.py"), line=7, advice="finish it")

    assert str(finding) == "src/a.py:7: finish it"


def test_prose_is_held_to_the_rules_of_prose_only() -> None:
    assert list(tidy.findings_in(module("docs/a.md", "# TODO is a word here\n"))) == []


def test_code_is_held_to_every_rule() -> None:
    advice = [finding.advice for finding in tidy.findings_in(module("tests/utils.py", "x = 1  # TODO\n"))]

    assert len(advice) == 3, advice


def test_code_that_this_python_cannot_read_is_a_finding_and_no_crash() -> None:
    [finding] = tidy.findings_in(module("tools/a.py", "x = 1\nx ==\n"))

    assert finding.line == 2


def test_all_of_the_project_is_looked_at_and_nothing_that_tools_leave_behind(tmp_path: Path) -> None:
    looked_at = [
        "README.md",
        "bench/a.py",
        "docs/adr/a.md",
        "pyproject.toml",
        "src/b.py",
        "tests/c.py",
        "tools/d.py",
    ]
    left_behind = [
        ".venv/e.py",
        "src/__pycache__/b.py",
        ".hidden.toml",
        "requirements/runtime.txt",
        "src/b.pyc",
    ]
    for name in (*looked_at, *left_behind):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")

    files = tidy.project_files(tmp_path)

    assert sorted(str(file.path) for file in files) == looked_at


def test_an_unknown_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tidy.main(["--fix"]) == 2
    assert "usage" in capsys.readouterr().err
