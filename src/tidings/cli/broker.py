"""`tidings broker`: runs one broker in the foreground, on one machine of several or as a child of `tidings
up`.

Rule: it turns flags into options and an outcome into an exit code; what a broker does stands in the runtime.
Must not know: how a broker works. Tests: tests/cli/test_broker.py
"""

from __future__ import annotations

from pathlib import Path

import click

from tidings.cli.doors import Doors
from tidings.cli.failure import Failure
from tidings.cli.settings import address, read_settings, setting_options
from tidings.config.address import Address
from tidings.config.exits import Exit


@click.command()
@click.option("--id", "broker_id", type=int, help="The broker's number in its cluster.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="The broker's data folder.")
@click.option("--kafka", type=address, metavar="HOST:PORT", help="Where Kafka clients connect.")
@click.option("--peer", type=address, metavar="HOST:PORT", help="Where the other brokers connect.")
@click.option("--join", metavar="HOST:PORT,...", help="Peer addresses of the brokers that form the cluster.")
@click.option("--advertise", metavar="HOST:PORT", help="Address told to clients, if it is another.")
@click.option("--advertise-peer", metavar="HOST:PORT", help="Address told to other brokers, as in --join.")
@click.option("--rack", metavar="R", help="Place of this broker; replicas are spread over racks.")
@click.option("--secret-file", type=click.Path(path_type=Path, dir_okay=False), help="The cluster's secret.")
@click.option("--insecure-network", is_flag=True, default=None, help="Let other machines in, unsecured.")
@click.option("--replace", metavar="ID", type=int, help="Take the place of broker ID, whose disk was lost.")
@click.option("--ready-fd", type=int, hidden=True, help="Where to write one line of JSON when ready.")
@click.option("--parent-fd", type=int, hidden=True, help="A pipe at whose end this broker ends too.")
@setting_options
@click.pass_obj
def broker(
    doors: Doors,
    broker_id: int | None,
    data: Path | None,
    kafka: Address | None,
    peer: Address | None,
    join: str | None,
    advertise: str | None,
    advertise_peer: str | None,
    rack: str | None,
    secret_file: Path | None,
    insecure_network: bool | None,
    replace: int | None,
    ready_fd: int | None,
    parent_fd: int | None,
    config_file: Path | None,
    assignments: tuple[str, ...],
) -> int:
    """Run one broker in the foreground.

    A cluster is formed once, when every broker of --join answers, all are blank and all hold the same list.
    Its brokers know each other by the secret file; `tidings secret FILE` makes one, to be copied to every
    machine.
    """
    if replace is not None and broker_id not in (None, replace):
        raise Failure(f"--replace {replace} and --id {broker_id} name two brokers", code=Exit.USAGE)
    flags = {
        "broker_id": broker_id if replace is None else replace,
        "data_folder": data and data.absolute(),
        "kafka_host": kafka and kafka.host,
        "kafka_port": kafka and kafka.port,
        "peer_host": peer and peer.host,
        "peer_port": peer and peer.port,
        "join": join,
        "advertise": advertise,
        "advertise_peer": advertise_peer,
        "rack": rack,
        "secret_file": secret_file and secret_file.absolute(),
        "insecure_network": insecure_network,
        "replace": True if replace is not None else None,
    }
    typed = {
        "broker_id": f"--id {broker_id}" if replace is None else f"--replace {replace}",
        "data_folder": f"--data {data}",
        "kafka_host": f"--kafka {kafka}",
        "kafka_port": f"--kafka {kafka}",
        "peer_host": f"--peer {peer}",
        "peer_port": f"--peer {peer}",
    }
    config = read_settings(config_file, assignments, flags, typed=typed).config
    if config.data_folder is None:
        raise Failure("a broker needs a folder for its data", hint="--data DIR", code=Exit.USAGE)
    return doors.run_broker(config, ready_fd=ready_fd, parent_fd=parent_fd)
