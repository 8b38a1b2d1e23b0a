"""`tidings broker` turns its flags into options, and what came of the broker into an exit code."""

from pathlib import Path

import pytest

from tidings.cli.doors import Doors
from tidings.cli.main import run
from tidings.config.exits import Exit
from tidings.config.options import Config


class FakeBroker:
    """Notes how it was run, and ends with a code."""

    def __init__(self, code: int = 0) -> None:
        self.configs: list[Config] = []
        self.descriptors: list[tuple[int | None, int | None]] = []
        self._code = code

    def __call__(self, config: Config, *, ready_fd: int | None, parent_fd: int | None) -> int:
        self.configs.append(config)
        self.descriptors.append((ready_fd, parent_fd))
        return self._code


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def broker(fake: FakeBroker, *flags: str) -> int:
    return run(["broker", *flags], Doors(run_broker=fake))


def test_flags_are_options(here: Path) -> None:
    fake = FakeBroker()

    code = broker(
        fake,
        *("--id", "2", "--data", "d", "--kafka", "127.0.0.1:9093", "--peer", "[::1]:19093"),
        *("--join", "a:1,b:2", "--advertise", "me:9093", "--rack", "east", "--secret-file", "s"),
        *("--advertise-peer", "me:19093"),
        *("--set", "segment_bytes=65536", "--ready-fd", "1", "--parent-fd", "0"),
    )

    [config] = fake.configs
    assert code == 0
    assert (config.broker_id, config.data_folder) == (2, here / "d")
    assert (config.kafka_host, config.kafka_port) == ("127.0.0.1", 9093)
    assert (config.peer_host, config.peer_port) == ("::1", 19093)
    assert config.join == ("a:1", "b:2")
    assert (config.advertise, config.rack, config.secret_file) == ("me:9093", "east", here / "s")
    assert config.advertise_peer == "me:19093"
    assert config.segment_bytes == 65536
    assert config.replace is False
    assert fake.descriptors == [(1, 0)]


def test_a_flag_is_stronger_than_the_same_option_set_by_name() -> None:
    fake = FakeBroker()

    broker(fake, "--data", "d", "--id", "2", "--set", "broker_id=3")

    assert fake.configs[0].broker_id == 2


def test_replacing_a_broker_names_it() -> None:
    fake = FakeBroker()

    broker(fake, "--data", "d", "--replace", "3")

    assert (fake.configs[0].broker_id, fake.configs[0].replace) == (3, True)


def test_replacing_another_broker_than_oneself_is_refused() -> None:
    fake = FakeBroker()

    assert broker(fake, "--data", "d", "--id", "2", "--replace", "3") == Exit.USAGE
    assert fake.configs == []


def test_a_broker_without_a_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert broker(FakeBroker()) == Exit.USAGE
    assert "--data DIR" in capsys.readouterr().err


def test_an_open_network_is_refused_without_the_word_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeBroker()

    refused = broker(fake, "--data", "d", "--kafka", "0.0.0.0:9092")
    taken = broker(fake, "--data", "d", "--kafka", "0.0.0.0:9092", "--insecure-network")

    assert (refused, taken) == (Exit.CONFIG, Exit.OK)
    assert "--insecure-network" in capsys.readouterr().err
    assert len(fake.configs) == 1


@pytest.mark.parametrize("text", ["9092", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ":9092"])
def test_an_address_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert broker(FakeBroker(), "--data", "d", "--kafka", text) == Exit.USAGE
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("code", list(Exit))
def test_the_exit_code_is_the_broker_s(code: Exit) -> None:
    assert broker(FakeBroker(code), "--data", "d") == code
