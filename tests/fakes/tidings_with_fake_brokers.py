"""The program `tidings`, whose `up` runs processes that only look like brokers (broker_process.py)."""

import sys
from pathlib import Path

from tidings.cli.doors import Doors
from tidings.cli.main import run

FAKE_BROKER = Path(__file__).with_name("broker_process.py")

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], Doors(broker_program=(sys.executable, str(FAKE_BROKER)))))
