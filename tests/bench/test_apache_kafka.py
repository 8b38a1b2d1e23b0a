"""Kafka's settings, the resolved jars, and (long) one real start to the last file removed."""

import shutil
from pathlib import Path

import pytest

from bench import apache_kafka, clients
from bench.apache_kafka import ApacheKafka
from bench.processes import StartError


def _settings(*, fsync: bool) -> dict[str, str]:
    text = apache_kafka.properties(
        node_id=2, kafka_ports=[1, 2, 3], controller_ports=[4, 5, 6], data=Path("/data"), fsync=fsync
    )
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_node_listens_on_its_own_ports_and_knows_all_voters() -> None:
    settings = _settings(fsync=False)

    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:5"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:2"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:4,2@127.0.0.1:5,3@127.0.0.1:6"
    assert settings["node.id"] == "2"


def test_only_the_column_that_says_so_flushes_every_message() -> None:
    plain, flushing = _settings(fsync=False), _settings(fsync=True)

    assert flushing.pop("log.flush.interval.messages") == "1"
    assert flushing == plain


def test_jars_that_are_all_there_are_not_resolved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = tmp_path / "kafka.jar"
    jar.touch()
    listing = tmp_path / f"kafka-{apache_kafka.VERSION}" / "classpath.txt"
    listing.parent.mkdir()
    listing.write_text(f"{jar}\n")
    monkeypatch.setenv("PATH", "")

    assert apache_kafka.classpath(tmp_path) == str(jar)


def test_without_java_the_message_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")

    with pytest.raises(StartError, match="`mvn` and `java`"):
        apache_kafka.classpath(tmp_path)


def test_stopping_what_never_started_does_nothing(tmp_path: Path) -> None:
    ApacheKafka(cache=tmp_path, fsync=False, environment={}).stop()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    shutil.which("mvn") is None or shutil.which("java") is None, reason="needs Maven and Java"
)
def test_a_cluster_takes_writes_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    kafka = ApacheKafka(cache=tmp_path / "cache", fsync=True, environment={})

    try:
        kafka.prepare()
        kafka.start()
        topic = clients.create_topic(kafka.bootstrap)
        assert clients.is_in_sync(kafka.bootstrap, topic)
        assert clients.message_count(kafka.bootstrap, topic, 0) == 1
        assert clients.leader_epochs(kafka.bootstrap, topic) == 0
    finally:
        kafka.stop()

    assert kafka.brokers() == ()
    assert list((tmp_path / "temporary").iterdir()) == []
