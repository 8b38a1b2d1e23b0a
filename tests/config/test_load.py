"""Options come from file, environment and flags; what is wrong is found where it stands."""

from pathlib import Path

import pytest

from tidings.config.load import ConfigError, describe, load, load_with_places
from tidings.config.options import Config


def toml(folder: Path, text: str) -> Path:
    path = folder / "tidings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_nothing_given_is_all_defaults() -> None:
    assert load(None, {}, {}) == Config()


def test_each_source_is_stronger_than_the_one_before(tmp_path: Path) -> None:
    file = toml(tmp_path, "broker_id = 1\nkafka_port = 1\npeer_port = 1\n")

    config = load(file, {"TIDINGS_KAFKA_PORT": "2", "TIDINGS_PEER_PORT": "2"}, {"peer_port": 3})

    assert (config.broker_id, config.kafka_port, config.peer_port) == (1, 2, 3)


def test_the_place_of_each_value_is_known(tmp_path: Path) -> None:
    file = toml(tmp_path, "# mine\nbroker_id = 7\n")

    places = load_with_places(file, {"TIDINGS_RACK": "east"}, {"peer_port": 3}).place_by_option

    assert places == {
        "broker_id": f"{file}:2",
        "rack": "environment TIDINGS_RACK",
        "peer_port": "flag --peer-port",
    }


def test_texts_become_what_the_option_is() -> None:
    config = load(
        None,
        {
            "TIDINGS_KAFKA_PORT": "9_094",
            "TIDINGS_EPHEMERAL": "Yes",
            "TIDINGS_RESTART": "off",
            "TIDINGS_JOIN": "a:1, b:2,",
            "TIDINGS_DATA_FOLDER": "/var/lib/tidings",
            "TIDINGS_RETENTION_MS": "-1",
        },
        {},
    )

    assert config.kafka_port == 9094
    assert (config.ephemeral, config.restart) == (True, False)
    assert config.join == ("a:1", "b:2")
    assert config.data_folder == Path("/var/lib/tidings")
    assert config.retention_ms == -1


def test_toml_values_are_taken_as_they_are(tmp_path: Path) -> None:
    file = toml(tmp_path, 'join = ["a:1", "b:2"]\ninsecure_network = true\ndata_folder = "/srv/t"\n')

    config = load(file, {}, {})

    assert config.join == ("a:1", "b:2")
    assert config.insecure_network is True
    assert config.data_folder == Path("/srv/t")


def test_a_flag_that_was_not_given_says_nothing() -> None:
    assert load(None, {"TIDINGS_RACK": "east"}, {"rack": None}).rack == "east"


def test_variables_of_the_commands_are_no_options() -> None:
    environment = {"TIDINGS_KAFKA": "a:1", "TIDINGS_CONFIG": "x", "TIDINGS_TEST_X": "y", "HOME": "/"}

    assert load(None, environment, {}) == Config()


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (
            "broker_id = 1\n\nretension_ms = 5\n",
            3,
            "unknown option 'retension_ms'; did you mean 'retention_ms'?",
        ),
        (
            "[raft]\nx = 1\nbeat_interval_ms = 5\n",
            1,
            "unknown option 'raft': sections are not used; write beat_interval_ms = ... at the top",
        ),
        ("[raft]\nx = 1\n", 1, "write NAME = VALUE lines at the top"),
        ("# x\n[[join]]\na = 1\n", 2, "join is a list of texts, not"),
        ("[rack]\na = 1\n", 1, "rack is no table; options stand without [tables]"),
        ("x = 1\ny =", 2, "not TOML"),
        ('broker_id = "one"\n', 1, "broker_id is a whole number, not 'one'"),
        ("broker_id = true\n", 1, "broker_id is a whole number, not True"),
        ("\nbroker_id = 1.5\n", 2, "broker_id is a whole number, not 1.5"),
        ("restart = 1\n", 1, "restart is true or false, not 1"),
        ("rack = 5\n", 1, "rack is a text, not 5"),
        ("join = [1]\n", 1, "join is a list of texts, not [1]"),
        ("\n\n  kafka_port = 70_000\n", 3, "kafka_port: 70000 is not between 0 and 65535 (port)"),
        ("\n'kafka_host' = '0.0.0.0'\n", 2, "kafka_host: 0.0.0.0 can be reached from other machines"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, line: int, problem: str) -> None:
    file = toml(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        load(file, {}, {})

    assert caught.value.place == f"{file}:{line}"
    assert problem in str(caught.value)


def test_what_is_no_toml_is_named_with_line_and_column(tmp_path: Path) -> None:
    file = toml(tmp_path, "x = 1\nrack = east\n")

    with pytest.raises(ConfigError, match="not TOML") as caught:
        load(file, {}, {})

    assert caught.value.place == f"{file}:2:8"


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(
        ConfigError, match="environment TIDINGS_BROKR_ID: unknown option 'brokr_id'"
    ) as caught:
        load(None, {"TIDINGS_BROKR_ID": "1"}, {})

    assert caught.value.hint == "did you mean 'broker_id'?"


def test_a_wrong_flag_is_named() -> None:
    with pytest.raises(ConfigError, match="flag --restart: restart is true or false, not 'perhaps'"):
        load(None, {}, {"restart": "perhaps"})


def test_a_name_that_resembles_nothing_is_sent_to_the_list() -> None:
    with pytest.raises(ConfigError, match="`tidings config` lists them all"):
        load(None, {}, {"xyzzy": 1})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "missing.toml", {}, {})


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tidings.toml"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load(path, {}, {})


def test_every_option_is_described_with_value_default_and_source() -> None:
    described = {each.name: each for each in describe(load_with_places(None, {}, {"broker_id": 4}))}

    assert len(described) == len(Config.__dataclass_fields__)
    changed, untouched = described["broker_id"], described["kafka_port"]
    assert (changed.value, changed.default, changed.source) == (4, 1, "flag --broker-id")
    assert (untouched.value, untouched.source, untouched.unit) == (9092, "default", "port")
