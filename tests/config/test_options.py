"""Options are bounded, consistent with each other, and each says its unit and its reason."""

from dataclasses import FrozenInstanceError, fields

import pytest

from tidings.config.options import Config, OptionError, about, is_loopback


def test_the_defaults_hold_together() -> None:
    Config()


def test_a_config_cannot_be_changed() -> None:
    config = Config()

    with pytest.raises(FrozenInstanceError):
        config.kafka_port = 1  # type: ignore[misc]  # that it cannot is what is tested


@pytest.mark.parametrize("each", fields(Config), ids=lambda each: each.name)
def test_every_option_says_why_and_in_which_unit(each: object) -> None:
    known = about(each)  # type: ignore[arg-type]  # a field, as `fields` gives it

    assert len(known.reason) > 8
    assert known.group


def test_every_number_has_bounds_and_a_unit_at_the_end_of_its_name() -> None:
    for each in fields(Config):
        known = about(each)
        if type(each.default) is int and each.name != "broker_id":
            assert known.low is not None, each.name
            assert known.unit in ("ms", "bytes", "count", "port"), each.name
            if known.unit in ("ms", "bytes"):
                assert known.unit in each.name.split("_"), each.name


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("broker_id", 0),
        ("broker_id", 2**31),
        ("kafka_port", -1),
        ("peer_port", 65_536),
        ("brokers", 0),
        ("election_timeout_ms_min", 0),
        ("append_bytes_max", 1),
        ("retention_ms", -2),
    ],
)
def test_a_value_out_of_its_bounds_is_refused_by_name(option: str, value: int) -> None:
    with pytest.raises(OptionError, match="is not between") as caught:
        Config(**{option: value})  # type: ignore[arg-type]  # every name here is that of a number

    assert caught.value.option == option


@pytest.mark.parametrize(
    ("options", "blamed"),
    [
        ({"election_timeout_ms_min": 3_000}, "election_timeout_ms_min"),
        ({"beat_interval_ms": 600}, "beat_interval_ms"),
        ({"wal_bytes_max": 64 * 1024 * 1024}, "wal_bytes_max"),
        ({"batch_bytes_max": 17 * 1024 * 1024}, "batch_bytes_max"),
        ({"restart_pause_ms_max": 100}, "restart_pause_ms_min"),
        ({"memory_bytes_max": 1024 * 1024}, "request_bytes_max"),
        ({"request_bytes_max": 29 * 1024 * 1024}, "peer_frame_bytes_max"),
        ({"start_piece_bytes": 29 * 1024 * 1024}, "peer_frame_bytes_max"),
        (
            {"append_bytes_max": 29 * 1024 * 1024, "inflight_bytes_max": 64 * 1024 * 1024},
            "peer_frame_bytes_max",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, int], blamed: str) -> None:
    with pytest.raises(OptionError) as caught:
        Config(**options)  # type: ignore[arg-type]  # every name here is that of a number

    assert caught.value.option == blamed


def test_an_open_network_is_refused_until_it_is_asked_for_by_name() -> None:
    with pytest.raises(OptionError, match="other machines") as caught:
        Config(kafka_host="0.0.0.0")

    assert "--insecure-network" in caught.value.hint
    assert Config(kafka_host="0.0.0.0", insecure_network=True).kafka_host == "0.0.0.0"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "::1", "[::1]"])
def test_loopback_is_known_by_its_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "broker.example", ""])
def test_anything_else_can_be_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("option", "value"),
    [("join", ("a:1", "b")), ("advertise", "here"), ("advertise", "here:99999"), ("advertise_peer", "there")],
)
def test_an_address_that_is_none_is_refused(option: str, value: object) -> None:
    with pytest.raises(OptionError) as caught:
        Config(**{option: value})  # type: ignore[arg-type]  # of the option's type, in words that are no address

    assert caught.value.option == option


@pytest.mark.parametrize(("option", "value"), [("log_format", "xml"), ("log_level", "loud")])
def test_a_word_that_is_no_choice_is_refused(option: str, value: str) -> None:
    with pytest.raises(OptionError, match="none of"):
        Config(**{option: value})  # type: ignore[arg-type]  # a text for an option of texts
