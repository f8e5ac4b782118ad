"""Checks an environment's settings: their names, and the values in a record of a suite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
import inspect
from typing import Any

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import field_types
from seed_acme.checks import signatures


def check(
  config: config_lib.EnvironmentConfig,
  function: Callable[..., Any],
  skip: Collection[str],
  also: Iterable[str] = (),
) -> None:
  """Raises `types.UserError` for a setting that is not accepted, or one that is missing.

  skip: parameters that are not settings. also: settings that are handled elsewhere.
  """
  kinds = {parameter.kind for parameter in parameters(function).values()}
  accepted = [*names(function, skip), *also]
  given = list(config.settings)
  if inspect.Parameter.VAR_KEYWORD in kinds:  # any name but those of parameters to skip
    given = [name for name in given if name in skip and name in names(function)]
  check_names(f'environment {config.id!r}', given, accepted)
  missing = [
    name
    for name, parameter in parameters(function).items()
    if name in accepted and parameter.default is parameter.empty and name not in config.settings
  ]
  if missing:
    raise types.UserError(f'environment {config.id!r} needs the setting {missing[0]!r}')


def check_names(environment: str, given: Iterable[str], accepted: Collection[str]) -> None:
  """Raises `types.UserError` for a setting that is not accepted. environment: for messages."""
  for name in given:
    if name not in accepted:
      raise types.UserError(
        f'{environment} has no setting {name!r}: expected {", ".join(accepted) or "none"}'
      )


def check_values(where: str, settings: Any) -> None:
  """Raises `types.UserError` for a value of the wrong type or out of the bounds of its field.

  settings: an instance of a suite's dataclass. where: names the suite, for messages.
  """
  try:
    field_types.check(settings)
    bounds.check(settings)
  except types.UserError as error:
    raise types.UserError(f'{where}: {error}') from None


def names(function: Callable[..., Any], skip: Collection[str] = ()) -> list[str]:
  """Returns the parameters that can be given by name, except those to skip."""
  return [
    name
    for name, parameter in parameters(function).items()
    if name not in skip
    and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
  ]


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
  """Returns the parameters of a function or class by name, as `signatures.of` does."""
  return dict(signatures.of(function).parameters)
