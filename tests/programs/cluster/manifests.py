"""Arguments of a manifest."""

import dataclasses

from seed_acme.configs import registry
from seed_acme.programs.cluster import manifest_command
from seed_acme.programs.command_line import parsing

IMAGE = 'registry.example.org/seed-acme:0.1'


def arguments(*overrides, config='catch_vtrace', **fields):
  base = manifest_command.ManifestArguments(config=registry.load(config), image=IMAGE)
  parsed = parsing.parse(manifest_command.ManifestArguments, list(overrides), 'manifest', base)
  return dataclasses.replace(parsed, **fields)


def pod(job):
  return job['spec']['template']['spec']


def container(job):
  [found] = pod(job)['containers']
  return found
