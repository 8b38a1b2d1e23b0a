"""An address is written as it is read; an IPv6 host stands in brackets."""

import pytest

from tidings.config.address import Address


@pytest.mark.parametrize("text", ["127.0.0.1:9092", "broker.example:0", "[::1]:65535"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(Address.parse(text)) == text


def test_the_brackets_of_a_host_are_not_part_of_it() -> None:
    assert Address.parse(" [fe80::1]:9092 ") == Address("fe80::1", 9092)


@pytest.mark.parametrize("text", ["", "9092", ":9092", "host", "host:", "host:x", "host:-1", "host:٣"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        Address.parse(text)


def test_a_port_beyond_the_last_one_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 65535"):
        Address.parse("host:65536")
