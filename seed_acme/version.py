"""The version of seed_acme, written here only; setup.py reads it."""

__version__ = '0.1.0'
