"""Exit codes mean one thing for ever: changing a number here breaks scripts that rely on it."""

from tidings.config.exits import LASTING, Exit


def test_every_code_keeps_its_number() -> None:
    numbers = {each.name: each.value for each in Exit}

    assert numbers == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "CONFIG": 3,
        "FOLDER_LOCKED": 4,
        "FORMAT_TOO_NEW": 5,
        "IDENTITY": 6,
        "DISK_FAILED": 7,
        "PORT_IN_USE": 8,
        "UNREACHABLE": 9,
        "INTERRUPTED": 130,
    }


def test_a_locked_folder_is_worth_another_start() -> None:
    assert Exit.FOLDER_LOCKED not in LASTING
    assert Exit.FAILED not in LASTING
