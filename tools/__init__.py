"""Tools: the programs that `make` runs. Not shipped; they know the project, the project never imports them."""
