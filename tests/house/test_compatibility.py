"""Tests of tools/compatibility.py: the page says what code says, and of clients what tests have shown."""

from __future__ import annotations

import pytest
from kio.schema import index

from tidings.broker.dispatch import LEFT_OUT
from tidings.protocol.apis import API_VERSIONS
from tools import compatibility, compatibility_facts


def case(shows: str, verdict: str = "") -> str:
    """A test of pytest's report."""
    return f'<testcase><properties><property name="shows" value="{shows}"/></properties>{verdict}</testcase>'


REPORT = "".join(
    [
        "<testsuites><testsuite>",
        case("kcat: message: plain"),
        case("Java: message: plain"),
        case("Java: message: plain", "<failure/>"),
        case("kcat: tool: x", "<skipped/>"),
        "<testcase/></testsuite></testsuites>",
    ]
)


def test_the_page_says_what_the_code_says() -> None:
    written = compatibility.PAGE.read_text(encoding="utf-8")

    assert "\n".join(compatibility.facts_of_code()) in written, "run `make compatibility`"


def test_the_page_has_a_row_for_every_served_api() -> None:
    rows = [line.split(" | ")[0].removeprefix("| ") for line in compatibility_facts.served_apis()[2:]]

    assert rows == [str(key) for key in sorted(API_VERSIONS)]


def test_every_api_that_is_left_out_has_its_name() -> None:
    assert set(compatibility_facts.LEFT_OUT_NAMES) == set(LEFT_OUT)


@pytest.mark.parametrize("key", sorted(set(LEFT_OUT) & set(index.api_key_map)))
def test_the_names_are_kafkas(key: int) -> None:
    assert compatibility_facts.LEFT_OUT_NAMES[key] == kafka_name(key)


@pytest.mark.parametrize("key", sorted(API_VERSIONS))
def test_the_names_of_served_apis_are_kafkas(key: int) -> None:
    assert compatibility_facts.served_name(key) == kafka_name(key)


def test_a_client_can_do_what_all_tests_of_it_have_shown() -> None:
    shown = compatibility.read_report(REPORT)

    assert shown.says("kcat", "message: plain") == "yes"
    assert shown.says("aiokafka", "message: plain") == ""


def test_a_test_that_fails_or_is_skipped_shows_that_it_cannot() -> None:
    shown = compatibility.read_report(REPORT)

    assert shown.says("Java", "message: plain") == "**no**"
    assert shown.failures() == ["Java: message: plain", "kcat: tool: x"]


def test_features_stand_in_the_order_of_their_groups() -> None:
    shown = compatibility.read_report(REPORT)

    assert shown.features("kcat") == ["message: plain", "tool: x"]


def test_every_client_has_a_version_but_the_one_of_the_system() -> None:
    versions = compatibility.client_versions()

    assert set(versions) == set(compatibility.CLIENTS)
    assert [client for client, version in versions.items() if not version] == ["kcat"]


def kafka_name(key: int) -> str:
    """As another library's generated code spells it."""
    name = str(index.api_key_map[key])
    return "".join(part.capitalize() for part in name.split("_"))
