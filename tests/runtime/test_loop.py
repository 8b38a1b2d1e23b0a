"""Brokers run on the fast loop where the platform has it."""

from __future__ import annotations

import sys

import pytest

from tidings.runtime.loop import new_loop


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop is not made for it")
def test_it_is_uvloop() -> None:
    loop = new_loop()

    try:
        assert type(loop).__module__.startswith("uvloop")
    finally:
        loop.close()
