"""Prices by name, from a file, and the cost of a run."""

import pytest

from seed_acme import types
from seed_acme.programs.tools.planning import prices
from tests.programs.tools.planning import made_up


def test_dollars_of_the_papers_first_row():
  """176 CPUs and a P100 at 30,000 frames/s cost $90.9 per 1e9 frames, calculated by hand."""
  scale = made_up.make_scale(actors=176)
  an_hour = prices.dollars_per_hour(scale, 1, 'p100', prices.FROM_MEMORY)
  assert an_hour == pytest.approx(176 * 0.0475 + 1.46)
  assert prices.dollars_per_billion_frames(an_hour, 30e3) == pytest.approx(90.9, abs=0.1)


def test_a_shared_machine_costs_its_cores_only():
  scale = made_up.make_scale(actors=176, cores=8)
  assert prices.dollars_per_hour(scale, 2, 'p100', {'cpu_core': 0.05}) == pytest.approx(0.4)


def test_a_file_replaces_all_prices(tmp_path):
  path = tmp_path / 'prices.json'
  path.write_text('{"cpu_core": 0.03, "h100": 4}')
  assert prices.read(str(path)) == {'cpu_core': 0.03, 'h100': 4}
  assert prices.read('') == prices.FROM_MEMORY


@pytest.mark.parametrize(
  'content', ['', '[]', '{"a": "b"}', '{"a": -1}', '{"a": true}', '{"a": NaN}']
)
def test_other_files_are_refused(tmp_path, content):
  path = tmp_path / 'prices.json'
  path.write_text(content)
  with pytest.raises(types.UserError, match=r'prices\.json'):
    prices.read(str(path))


def test_an_unknown_name_is_refused_with_the_known_ones():
  with pytest.raises(
    types.UserError, match="no price for 'v100'; known: cpu_core, p100, tpu_v3_core"
  ):
    prices.price(prices.FROM_MEMORY, 'v100')
