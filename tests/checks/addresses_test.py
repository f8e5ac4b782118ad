"""Right addresses. Wrong ones are tried where users give them: cluster file, `seed-acme inspect`."""

from seed_acme.checks import addresses


def test_addresses_in_every_form():
  assert addresses.parse('a-b.example_1.org:65535') == ('a-b.example_1.org', 65535)
  assert addresses.parse('[fe80::1]:1') == ('fe80::1', 1)
