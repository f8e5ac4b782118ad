"""What tests of bfloat16 need of the processor."""

import pytest

from seed_acme.networks import precision

needs_convolutions = pytest.mark.skipif(
  not precision.convolves_bfloat16(),
  reason='TensorFlow 2.8 convolves bfloat16 on processors with AVX-512 only',
)
