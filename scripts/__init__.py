"""The project's own tools, importable so that tests can use and test them."""
