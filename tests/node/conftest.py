"""What most tests of whole brokers begin with."""

from __future__ import annotations

import pytest

from tests.node.client import Client
from tests.node.world import World


@pytest.fixture
def world() -> World:
    """Three brokers that serve."""
    world = World()
    world.run_until(world.is_serving)
    return world


@pytest.fixture
def client(world: World) -> Client:
    return Client(world)
