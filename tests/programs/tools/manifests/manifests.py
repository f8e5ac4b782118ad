"""Arguments of a manifest."""

import dataclasses

from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.command_line import line as line_lib

IMAGE = 'registry.example.org/seed-acme:0.1'


def arguments(*overrides, config='catch_vtrace', **fields):
  """Returns arguments for `manifest_command.write`."""
  line = ['manifest', f'--config={config}', f'--image={IMAGE}', *overrides]
  parsed, given = given_lib.split(command_lib.find('manifest'), line_lib.read(line))
  return dataclasses.replace(parsed, **fields), given.config()


def pod(job):
  return job['spec']['template']['spec']


def container(job):
  [found] = pod(job)['containers']
  return found
