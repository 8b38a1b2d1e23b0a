"""kafka-python as a witness: its message classes, and Kafka's message files that it ships.

It reads those files by a function that Python deprecates, which our warning filter would make an error.
"""

from __future__ import annotations

import importlib.resources
import json
import re
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer

MODULES = (
    kafka.protocol.admin,
    kafka.protocol.consumer,
    kafka.protocol.metadata,
    kafka.protocol.producer,
)


def message_class(name: str) -> Any:  # any: a class of the oracle, which has no types
    return next(getattr(module, name) for module in MODULES if hasattr(module, name))


def message_file(name: str) -> Any:  # any: what JSON holds
    folder = importlib.resources.files("kafka.protocol.schemas.resources")
    text = folder.joinpath(f"{name}.json").read_text()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
