"""A wrapper that checks every time step of an environment before it is used."""

from __future__ import annotations

import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.envs import time_steps
from seed_acme.envs import vector
from seed_acme.envs import wrapper


class CheckedEnvironment(wrapper.Wrapper):
  """A `core.VectorEnvironment` that raises if the wrapped one contradicts its specification.

  The `types.UserError` names environment, field, the expected and the actual value; for a value
  that is not finite it is a `types.NotFinite`. Called from one thread, like the wrapped
  environment, which it owns.
  """

  def __init__(self, environment: core.VectorEnvironment, name: str):
    """name: for messages."""
    super().__init__(environment)
    self._name = name
    self.spec = environment.spec
    self._structure = vector.Structure(self.spec.observation)
    self._check = time_steps.TimeStepCheck(self.spec.observation)
    size = (self.num_environments,)
    # (field, shape, dtype) of each array of a time step.
    self._arrays = [
      ('step_type', size, np.dtype(np.uint8)),
      *((field, size, np.dtype(np.float32)) for field in ('reward', 'discount', 'score')),
      *(
        (field, (*size, *spec.shape), np.dtype(spec.dtype))
        for field, spec in zip(
          time_steps.leaf_fields(self.spec.observation), self._structure.leaves
        )
      ),
    ]
    self._everyone = np.ones(size, bool)
    self._has_ended = self._everyone

  def reset(self) -> types.VectorTimeStep:
    """Starts new episodes in all environments."""
    self._has_ended = self._everyone
    return self._checked(self._environment.reset())

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """Steps all environments. actions: nest of `[E, ...]` that matches `spec.action`."""
    return self._checked(self._environment.step(actions))

  def _checked(self, timestep: types.VectorTimeStep) -> types.VectorTimeStep:
    leaves = self._leaves(timestep)
    fault = self._check.fault(timestep, self._has_ended, leaves)
    if fault is not None:
      raise fault.error(self._name)
    self._has_ended = timestep.step_type == types.LAST
    return timestep

  def _leaves(self, timestep: types.VectorTimeStep) -> list[np.ndarray]:
    """Returns the observation's leaves, after checking structure, shapes and dtypes, on which all
    other checks rely."""
    try:
      scalars = [timestep.step_type, timestep.reward, timestep.discount, timestep.score]
      observation = timestep.observation
    except AttributeError:
      found = type(timestep).__name__
      raise self._error('time step', 'a seed_acme.types.VectorTimeStep', found) from None
    try:
      leaves = self._structure.flatten(observation)
    except (KeyError, TypeError, ValueError) as error:
      expected = f'the structure of the specification, {self._structure}'
      found = str(vector.Structure(observation))
      raise self._error('observation', expected, found) from error
    for array, (field, shape, dtype) in zip((*scalars, *leaves), self._arrays):
      if not isinstance(array, np.ndarray):
        raise self._error(field, f'{dtype} of shape {shape}', type(array).__name__)
      if array.shape != shape or array.dtype != dtype:
        found = f'{array.dtype} of shape {array.shape}'
        raise self._error(field, f'{dtype} of shape {shape}', found)
    return leaves

  def _error(self, field: str, expected: str, found: str) -> types.UserError:
    """Returns an error about arrays that all environments share."""
    return types.UserError(
      f'environments 0 ... {self.num_environments - 1} of {self._name}: {field}: '
      f'expected {expected}, got {found}'
    )
