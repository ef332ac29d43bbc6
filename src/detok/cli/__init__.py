"""The command line: one command a file, each a thin layer over the library. Needs the extra ``detok[cli]``."""
