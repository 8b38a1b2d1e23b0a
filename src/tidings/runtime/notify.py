"""Notify: tells systemd that this process is ready or stopping, where it asked to be told (sd_notify).

Rule: one datagram to the address in NOTIFY_SOCKET; a failure is nobody's problem. Must not know: what ready
means. Tests: tests/runtime/test_notify.py
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str, environment: Mapping[str, str]) -> bool:
    """Sends `state` and says whether someone was told."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")) or not hasattr(socket, "AF_UNIX"):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]  # Linux's abstract names
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            sender.sendto(state.encode(), address)
        except OSError:
            return False
    return True
