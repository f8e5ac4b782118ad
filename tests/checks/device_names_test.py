import pytest

from seed_acme import types
from seed_acme.checks import device_names


@pytest.mark.parametrize(
  'text, expected, number',
  [
    ('', None, 1),
    (' ', None, 1),
    ('3', 3, 3),
    ('gpu:0', ('gpu:0',), 1),
    ('GPU:1, cpu:0', ('gpu:1', 'cpu:0'), 2),
    ('gpu:01', ('gpu:1',), 1),
  ],
)
def test_a_choice_is_nothing_a_count_or_names(text, expected, number):
  choice = device_names.parse(text, 'learner.training_devices')
  assert choice == expected and device_names.number_of(choice) == number


@pytest.mark.parametrize(
  'text, said',
  [
    ('0', r'\(0\) must be >= 1'),
    ('-2', r'\(-2\) must be >= 1'),
    ('tpu:0', "'tpu:0' is no device"),
    ('gpu', "'gpu' is no device"),
    ('gpu:0,', "'' is no device"),
    ('cpu:64', "'cpu:64' is no device"),
    ('gpu:0,gpu:0', 'names a device twice'),
    ('gpu:0,gpu:00', 'names a device twice'),
    ('gpu:\u0661', 'is no device'),
  ],
)
def test_anything_else_is_refused_with_the_field(text, said):
  with pytest.raises(types.UserError, match=rf'learner\.training_devices.*{said}'):
    device_names.parse(text, 'learner.training_devices')
