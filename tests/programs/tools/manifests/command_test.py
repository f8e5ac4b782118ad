"""The command that writes a manifest: its output, tokens, wrong input."""

import dataclasses
import json
import re

import pytest
import yaml

from seed_acme import types
from seed_acme.programs import cli
from seed_acme.programs.tools.manifests import command as manifest_command
from tests.programs.tools.manifests import manifests


def test_the_command_that_stops_leaves_the_run(tmp_path, capsys):
  """The printed command deletes only Jobs, by a label that all of this run's and no others have."""
  path = tmp_path / 'run.yaml'
  assert manifest_command.write(*manifests.arguments(out=str(path), namespace='lab')) == 0
  out = capsys.readouterr().out
  stop = re.search(r'kubectl delete jobs -n lab --cascade=foreground -l (\S+)=(\S+)$', out, re.M)
  made = list(yaml.safe_load_all(path.read_text()))
  assert all(one['metadata']['labels'][stop[1]] == stop[2] for one in made)
  assert f'Remove everything, the run with its checkpoints, too: kubectl delete -f {path}' in out
  assert manifest_command.write(*manifests.arguments(out=str(path), storage='none')) == 0
  assert f'Remove everything: kubectl delete -f {path}' in capsys.readouterr().out


def test_a_start_from_this_machine_is_refused_or_told(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'runs' / 'mine').mkdir(parents=True)
  (tmp_path / 'runs' / 'latest').symlink_to('mine')
  arguments, config = manifests.arguments()
  for name, words in (
    ('runs/mine', 'must be a path within the image'),
    ('gs://bucket/run', ''),
    ('', ''),
  ):
    config = dataclasses.replace(config, initial_checkpoint=name)
    assert manifest_command.write(arguments, config) == 0
    said = capsys.readouterr().err
    assert words in said and bool(words) == ('initial_checkpoint' in said)
  config = dataclasses.replace(config, initial_checkpoint='runs/latest@best')
  with pytest.raises(types.UserError, match='runs/latest@best is a link of this machine'):
    manifest_command.write(arguments, config)


def test_tokens_are_drawn_anew_and_the_file_is_for_its_owner(tmp_path, capsys):
  tokens = set()
  path = tmp_path / 'run.yaml'
  path.write_text('x' * 100_000)
  path.chmod(0o644)
  for _ in range(2):
    assert manifest_command.write(*manifests.arguments(out=str(path))) == 0
    [secret] = [one for one in yaml.safe_load_all(path.read_text()) if one['kind'] == 'Secret']
    tokens.add(secret['stringData']['token'])
    out = capsys.readouterr().out
    assert f'kubectl apply -f {path}' in out and secret['stringData']['token'] not in out
  assert len(tokens) == 2 and all(re.fullmatch('[0-9a-f]{32}', token) for token in tokens)
  assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@pytest.mark.parametrize(
  'fields, words',
  [
    ({'image': ''}, ['--image', 'docs/scaling.md']),
    ({'image': 'two words'}, ['--image', 'two words']),
    ({'actor_image': 'two words'}, ['--actor_image', 'two words']),
    ({'image_pull_secret': 'My_Secret'}, ['--image_pull_secret=My_Secret', 'small letters']),
    ({'token_secret': '-'}, ['--token_secret=-']),
    ({'learner_node_selector': 'gpu'}, ['--learner_node_selector=gpu', 'write KEY=VALUE']),
    ({'actor_node_selector': 'a=b,,c=d'}, ['--actor_node_selector=a=b,,c=d']),
    ({'actor_tolerations': 'spot=true'}, ['--actor_tolerations=spot=true', 'KEY=VALUE:EFFECT']),
    ({'replay_tolerations': 'a:Never'}, ['--replay_tolerations=a:Never', 'NoExecute']),
    ({'name': 'Big_Name'}, ['--name=Big_Name', 'small letters']),
    ({'name': 'x' * 41}, ['--name', '40']),
    ({'namespace': 'a b'}, ['--namespace=a b']),
    ({'storage': '10 GB'}, ['--storage=10 GB', '4Gi']),
    ({'learner_memory': 'much'}, ['--learner_memory=much']),
    ({'overrides': ['--learner_gpus=-1']}, ['--learner_gpus (-1) must be >= 0']),
    ({'out': '/proc/none/run.yaml'}, ['/proc/none/run.yaml']),
    ({'overrides': ['--config.transport.kind=courier']}, ['courier', 'grpc']),
    ({'overrides': ['--config.num_actors=0']}, ['num_actors', '>= 1']),
    (
      {'overrides': ['--config.num_evaluation_environments=1', '--config.record_every=9']},
      ['record_every (9) with Kubernetes', 'evaluate RUN --video'],
    ),
  ],
)
def test_wrong_input_is_one_clear_line(fields, words):
  fields = dict(fields)
  with pytest.raises(types.UserError) as error:
    manifest_command.write(*manifests.arguments(*fields.pop('overrides', []), **fields))
  assert all(word in str(error.value) for word in words), str(error.value)
  assert len(str(error.value).splitlines()) == 1


def test_from_the_command_line(capsys, tmp_path):
  assert (
    cli.main(['manifest', '--config=catch_vtrace', f'--image={manifests.IMAGE}', '--kind=nomad'])
    == 2
  )
  assert 'nomad' in capsys.readouterr().err
  assert cli.main(['manifest', f'--image={manifests.IMAGE}']) == 2
  assert '--config' in capsys.readouterr().err
  path = tmp_path / 'run.yaml'
  assert (
    cli.main(
      [
        'manifest',
        '--config=catch_vtrace',
        f'--image={manifests.IMAGE}',
        f'--out={path}',
        '--config.num_actors=16',
      ]
    )
    == 0
  )
  assert 'catch-vtrace-actor-0, catch-vtrace-actor-1, ..., catch-vtrace-actor-15' in (
    capsys.readouterr().out
  )
  settings = next(
    one for one in yaml.safe_load_all(path.read_text()) if one['kind'] == 'ConfigMap'
  )['data']
  assert json.loads(settings['cluster.json'])['actors'] == 16
