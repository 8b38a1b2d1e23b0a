"""The room contracts: an import that no row allows is found, and so is a room that nobody gave a row."""

import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from grimp import ImportGraph

from tools import rooms

ROOT = Path(__file__).resolve().parents[2]


def graph_of(*imports: str) -> ImportGraph:
    """An import graph from lines `importer -> imported`."""
    graph = ImportGraph()
    for line in imports:
        importer, _, imported = line.partition(" -> ")
        graph.add_import(importer=importer, imported=imported)
    return graph


def broken_table(table: list[str], graph: ImportGraph) -> list[str]:
    contract = rooms.RoomTableContract(name="", session_options={}, contract_options={"table": table})
    return sorted(contract.broken_rules(graph))


def broken_purity(graph: ImportGraph, **options: list[str]) -> list[str]:
    contract = rooms.PureRoomsContract(name="", session_options={}, contract_options=options)
    return sorted(contract.broken_rules(graph))


@pytest.mark.parametrize(
    "allowed",
    [
        "tidings.broker.produce -> tidings.broker.partitions",
        "tidings.broker.produce -> tidings.protocol",
        "tidings.broker.produce -> tidings.protocol.records",
        "tidings.broker -> tidings",
        "tidings.broker.produce -> dataclasses",
    ],
)
def test_what_the_row_allows_is_fine(allowed: str) -> None:
    assert broken_table(["broker: protocol", "protocol:"], graph_of(allowed)) == []


def test_an_import_that_no_row_allows_is_found_with_both_ends() -> None:
    found = broken_table(["raft:", "protocol:"], graph_of("tidings.raft.core -> tidings.protocol.records"))

    assert found == ["tidings.raft.core: 'raft' may not import tidings.protocol.records"]


def test_a_row_may_open_one_module_of_a_room_and_no_other() -> None:
    graph = graph_of(
        "tidings.storage.log -> tidings.protocol.records",
        "tidings.storage.log -> tidings.protocol.records_of_old",
        "tidings.storage.log -> tidings.protocol",
    )

    found = broken_table(["storage: protocol.records", "protocol:"], graph)

    assert found == [
        "tidings.storage.log: 'storage' may not import tidings.protocol",
        "tidings.storage.log: 'storage' may not import tidings.protocol.records_of_old",
    ]


def test_a_room_without_a_row_is_found() -> None:
    graph = graph_of("tidings.surprise -> dataclasses")

    assert broken_table(["raft:"], graph) == ["tidings.surprise: the room 'surprise' is not in the table"]


def test_a_row_of_a_room_that_is_not_built_yet_holds_nothing() -> None:
    assert broken_table(["raft:", "gateway: kafka"], graph_of("tidings.raft -> dataclasses")) == []


def test_a_star_allows_every_room() -> None:
    assert broken_table(["cli: *", "raft:"], graph_of("tidings.cli.up -> tidings.raft.core")) == []


def test_a_pure_room_that_touches_the_world_is_found() -> None:
    graph = graph_of(
        "tidings.raft.core -> time", "tidings.raft.core -> struct", "tidings.runtime.loop -> time"
    )

    found = broken_purity(graph, rooms=["raft"], outside=["time", "os"])

    assert found == ["tidings.raft.core: a pure room may not import time"]


def test_a_part_of_an_outside_module_is_outside_too() -> None:
    found = broken_purity(
        graph_of("tidings.raft.core -> concurrent.futures"), rooms=["raft"], outside=["concurrent"]
    )

    assert len(found) == 1


def test_a_seam_may_touch_the_world_and_its_neighbours_may_not() -> None:
    graph = graph_of("tidings.storage.files -> os", "tidings.storage.segment -> os")

    found = broken_purity(graph, rooms=["storage"], outside=["os"], seams=["storage.files"])

    assert found == ["tidings.storage.segment: a pure room may not import os"]


def test_a_broken_contract_prints_each_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    contract = rooms.RoomTableContract(name="", session_options={}, contract_options={"table": ["raft:"]})

    check = contract.check(graph_of("tidings.surprise -> dataclasses"), verbose=False)
    contract.render_broken_contract(check)

    assert not check.kept
    assert "the room 'surprise' is not in the table" in capsys.readouterr().out


def test_the_table_of_the_project_is_a_one_way_street() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [table] = [
        contract["table"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "room_table"
    ]

    rows = rooms.parse_table(table)
    below = {room: {module.partition(".")[0] for module in allowed} for room, allowed in rows.items()}

    order = list(TopologicalSorter(below).static_order())
    assert order.index("protocol") < order.index("broker") < order.index("node") < order.index("runtime")
