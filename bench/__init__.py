"""Programs that measure; no part of the product imports them. Run one with `python -m bench.NAME`."""
