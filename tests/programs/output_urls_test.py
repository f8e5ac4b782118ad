"""Results are written to this machine, and a URL makes no folder `gs:` in the working folder."""

import pathlib

import pytest

from seed_acme import types
from seed_acme.programs import cli
from seed_acme.programs.pictures import drawing
from seed_acme.programs.pictures import video

_ROOT = pathlib.Path(__file__).parents[2]
_MEASURED = _ROOT / 'docs' / 'evidence' / 'plan' / 'bench_pong_cnn.json'


@pytest.mark.parametrize(
  'words, url',
  [
    (['sweep', '--config=catch_vtrace', '--seeds=2', '--out={}'], 'gs://bucket/sweep'),
    (['sweep', '--report', '--out={}'], 'gs://bucket/sweep'),
    (['plan', f'--from={_MEASURED}', '--out={}'], 'gs://bucket/plan.png'),
    (['inspect', '--server=localhost:1', '--sample=1', '--save={}'], 'gs://bucket/items'),
    (
      ['manifest', '--config=catch_vtrace', '--image=example.org/me', '--out={}'],
      's3://bucket/run.yaml',
    ),
    (['actor-env', '{}', '--python=/absent/python'], 'gs://bucket/environment'),
  ],
)
def test_a_command_refuses_a_url(words, url, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  assert cli.main([word.format(url) for word in words]) == 2
  assert f'{url} is in a bucket: give a local' in capsys.readouterr().err
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
  'write, url',
  [
    (lambda url: drawing.write(drawing.new_figure(1, 1), url), 'gs://bucket/plot.png'),
    (video.Writer, 'gs://bucket/episode.mp4'),
  ],
)
def test_a_picture_is_not_written_to_a_url(write, url, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(types.UserError, match=f'{url} is in a bucket: give a local file'):
    write(url)
  assert list(tmp_path.iterdir()) == []
