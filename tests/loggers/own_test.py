"""A logger of the user's own: what is refused before the run, and what fails in the learner."""

import dataclasses

import pytest

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.loggers import own
from seed_acme.programs.front_end import lifecycle
from seed_acme.storage import run_directory


def _config(path):
  return dataclasses.replace(
    registry.load('catch_vtrace'), learner=config_lib.LearnerConfig(logger=path)
  )


@pytest.fixture(name='module', autouse=True)
def _module(tmp_path, monkeypatch):
  (tmp_path / 'their_logger.py').write_text("""
class Whole:
  def __init__(self, config, run_dir):
    self.seen = config.name, run_dir
  write = close = lambda self: None

class Half:
  def __init__(self, config, run_dir): ...
  def write(self, agent_steps, metrics): ...

def takes_nothing(): ...

A_NUMBER = 3
""")
  monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
  'path, said',
  [
    ('their_logger', r"learner.logger \('their_logger'\) must be written package.module:Name"),
    ('wanbd', 'or be one of wandb, mlflow; did you mean wandb'),
    ('no_such_logger:Whole', r"learner.logger \('no_such_logger:Whole'\) cannot be imported"),
    ('their_logger:Whol', 'has no .Whol.; did you mean Whole'),
    ('their_logger:takes_nothing', r'cannot be called as factory\(config, run_dir\): too many'),
    ('their_logger:A_NUMBER', r'cannot be called as factory\(config, run_dir\): 3 is not'),
  ],
)
def test_what_cannot_be_made_is_refused_before_a_run_folder_is(path, said, tmp_path):
  with pytest.raises(types.UserError, match=said):
    lifecycle.prepare(_config(path), str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


def test_it_is_made_with_the_configuration_and_the_folder(tmp_path):
  config = _config('their_logger:Whole')
  own.check(config)
  (made,) = own.make(config, run_directory.RunDirectory(tmp_path))
  assert made.seen == ('catch_vtrace', tmp_path)


def test_what_is_no_logger_is_refused(tmp_path):
  with pytest.raises(types.UserError, match=r'returned Half, which has no close\(\)'):
    own.make(_config('their_logger:Half'), run_directory.RunDirectory(tmp_path))


def test_none_is_the_default(tmp_path):
  own.check(_config(''))
  assert own.make(_config(''), run_directory.RunDirectory(tmp_path)) == []


@pytest.mark.parametrize('name', ['wandb', 'mlflow'])
def test_ours_are_known_by_name_and_refused_early_without_their_package(name, monkeypatch):
  own.check(_config(name))
  found = own.importlib.util.find_spec
  monkeypatch.setattr(
    own.importlib.util, 'find_spec', lambda wanted: None if wanted == name else found(wanted)
  )
  with pytest.raises(types.UserError, match=rf"needs the package {name}: .*'\.\[{name}\]'"):
    own.check(_config(name))
