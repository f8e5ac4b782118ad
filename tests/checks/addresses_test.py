"""Addresses that are right; wrong ones are tried in tests of `inspect` and of the cluster file."""

from seed_acme.checks import addresses


def test_addresses_in_every_form():
  assert addresses.parse('a-b.example_1.org:65535') == ('a-b.example_1.org', 65535)
  assert addresses.parse('[fe80::1]:1') == ('fe80::1', 1)
