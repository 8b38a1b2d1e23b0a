"""Tools: the programs that `make` runs. Not shipped; they know the project, and the project never imports them."""
