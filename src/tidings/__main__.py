"""`python -m tidings`: the command line, for whoever has it not on the path. Tests: tests/cli/test_main.py"""

from tidings.cli.main import main

main()
