"""The soft limit of open files is raised, never lowered, and never beyond what is wanted."""

import resource
import subprocess
import sys

from tidings.runtime.limits import OPEN_FILES_WANTED, open_files_max, raise_open_files, segment_files_max


def in_a_process_with(soft: int, hard: int) -> int:
    """What a fresh process gets: limits are not to be tried out on the one that runs the tests."""
    code = (
        "import resource\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "from tidings.runtime.limits import raise_open_files\n"
        "print(raise_open_files(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert said[0] == said[1]
    return int(said[0])


def test_the_soft_limit_becomes_the_hard_one() -> None:
    assert in_a_process_with(soft=64, hard=512) == 512


def test_what_is_raised_already_stays() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = raise_open_files()

    assert soft == raise_open_files()
    assert soft >= min(hard, OPEN_FILES_WANTED) or hard == resource.RLIM_INFINITY


def test_thousands_of_active_partitions_fit_where_the_limit_is_high() -> None:
    assert segment_files_max(OPEN_FILES_WANTED) == 32_768
    assert segment_files_max(65_536) == 8_192


def test_a_low_limit_leaves_the_files_that_a_small_broker_needs() -> None:
    assert segment_files_max(1_024) == segment_files_max(0) == 512


def test_the_limit_that_holds_is_told() -> None:
    assert open_files_max() == raise_open_files()
