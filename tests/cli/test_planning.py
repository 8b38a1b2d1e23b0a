"""Plans: which brokers run, where, and by commands that work by hand."""

import socket
import sys
from pathlib import Path

import pytest

from tidings.cli.failure import Failure
from tidings.cli.planning import plan_cluster
from tidings.config.load import Loaded, load_with_places
from tidings.runtime.cluster_folder import FolderError, read_record

PROGRAM = (sys.executable, "-m", "tidings", "broker")


def loaded(**flags: object) -> Loaded:
    return load_with_places(None, {}, {"kafka_port": 0, **flags})


def test_brokers_are_numbered_from_one_in_folders_of_their_own(tmp_path: Path) -> None:
    plans = plan_cluster(loaded(), tmp_path, PROGRAM)

    assert [plan.broker_id for plan in plans] == [1, 2, 3]
    assert [plan.data for plan in plans] == [tmp_path / f"broker-{number}" for number in (1, 2, 3)]


def test_the_command_of_a_broker_says_everything(tmp_path: Path) -> None:
    plans = plan_cluster(loaded(brokers=3), tmp_path, PROGRAM)

    first = plans[0]
    assert first.argv == (
        *PROGRAM,
        *("--id", "1", "--data", str(tmp_path / "broker-1"), "--kafka", first.kafka, "--peer", first.peer),
        *("--join", ",".join(plan.peer for plan in plans), "--secret-file", str(tmp_path / "secret")),
    )


def test_what_was_set_for_brokers_travels_with_the_command(tmp_path: Path) -> None:
    given = loaded(brokers=1, auto_create_topics=False, segment_bytes=1 << 20, restart=False)

    [plan] = plan_cluster(given, tmp_path, PROGRAM)

    settings = ("--set", "auto_create_topics=False", "--set", "segment_bytes=1048576")
    assert plan.argv[-5:] == (str(tmp_path / "secret"), *settings)


def test_a_consecutive_range_follows_the_given_port(tmp_path: Path) -> None:
    plans = plan_cluster(loaded(kafka_port=21_000), tmp_path, PROGRAM)

    assert [plan.kafka for plan in plans] == ["127.0.0.1:21000", "127.0.0.1:21001", "127.0.0.1:21002"]
    assert [plan.peer for plan in plans] == ["127.0.0.1:31000", "127.0.0.1:31001", "127.0.0.1:31002"]


def test_the_cluster_is_written_down_before_a_broker_starts(tmp_path: Path) -> None:
    plan_cluster(loaded(brokers=1), tmp_path, PROGRAM)

    record = read_record(tmp_path)
    assert record is not None
    assert record.brokers == 1
    assert (tmp_path / "secret").exists()


def test_an_even_number_of_brokers_is_taken_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan_cluster(loaded(brokers=2), tmp_path, PROGRAM)

    assert "2 brokers survive the loss of 0, as 1 do" in capsys.readouterr().err


def test_another_number_of_brokers_is_refused(tmp_path: Path) -> None:
    plan_cluster(loaded(brokers=1), tmp_path, PROGRAM)

    with pytest.raises(FolderError):
        plan_cluster(loaded(brokers=3), tmp_path, PROGRAM)


def test_a_taken_port_is_refused_by_number(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(Failure, match="is in use"):
        plan_cluster(loaded(brokers=1, kafka_port=listener.getsockname()[1]), tmp_path, PROGRAM)
