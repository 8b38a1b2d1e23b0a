"""Tools: the programs that `make` runs. They know the project; it never imports them, and none is shipped."""
