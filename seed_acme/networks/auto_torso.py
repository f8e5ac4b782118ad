"""The torso `auto`: a CNN for each picture of an observation, and an MLP for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.networks import torsos


class Picture(NamedTuple):
  """One array of the observation that goes through convolutions.

  place: its index among the observation's arrays. torso: from `[N, height, width(, channels)]`
  to features.
  """

  place: int
  torso: torsos.Torso


class AutoTorso(snt.Module):
  """Concatenates the features of each picture, then those of the MLP."""

  def __init__(
    self, pictures: Sequence[Picture], rest: torsos.Torso | None, name: str = 'auto_torso'
  ):
    """rest: torso for the list of all other arrays; None if there are only pictures."""
    super().__init__(name=name)
    self._pictures = tuple(pictures)
    self._rest = rest

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Nest of `[N, ...]` -> `[N, F]`; dicts in the order of their sorted keys."""
    leaves = tree.flatten(observation)
    parts = [picture.torso(leaves[picture.place]) for picture in self._pictures]
    if self._rest is not None:
      seen = {picture.place for picture in self._pictures}
      parts.append(self._rest([leaf for i, leaf in enumerate(leaves) if i not in seen]))
    return tf.concat(parts, axis=-1)
