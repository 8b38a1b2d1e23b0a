"""What the stock client is told; its questions to a cluster are asked in test_apache_kafka."""

from bench import clients


def test_settings_get_the_names_librdkafka_knows() -> None:
    settings = clients.client_settings("127.0.0.1:1", linger_ms=0, socket_timeout_ms=3000)

    assert settings["linger.ms"] == 0
    assert settings["socket.timeout.ms"] == 3000
    assert settings["bootstrap.servers"] == "127.0.0.1:1"
