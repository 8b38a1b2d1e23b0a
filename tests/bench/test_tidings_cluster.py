"""The ready line: what is read from it and what is refused."""

from pathlib import Path

import pytest

from bench.processes import StartError
from bench.systems import Broker
from bench.tidings_cluster import Member, Tidings, members

READY = (
    '{"event":"ready","kafka":"127.0.0.1:9092","brokers":[{"id":1,"pid":123,"kafka":"127.0.0.1:9092",'
    '"peer":"127.0.0.1:19092","data":"/data/1","argv":["tidings","broker"]}],"seconds":0.8}'
)


def test_the_ready_line_names_every_broker_and_how_to_start_it_again() -> None:
    assert members(READY) == {
        1: Member(
            broker=Broker(id=1, pid=123, address="127.0.0.1:9092"),
            folder=Path("/data/1"),
            argv=("tidings", "broker"),
        )
    }


@pytest.mark.parametrize(
    "line", ["", "ready", "[]", '{"event":"starting"}', '{"event":"ready","brokers":[{"id":1}]}']
)
def test_anything_else_is_not_a_ready_line(line: str) -> None:
    with pytest.raises(StartError, match="not a ready line"):
        members(line)


def test_stopping_what_never_started_does_nothing() -> None:
    Tidings(environment={}).stop()
