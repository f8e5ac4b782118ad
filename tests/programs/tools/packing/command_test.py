"""`seed-acme pack` and `unpack` without playing: the zip's contents, and refusals."""

import json
import os
import re
import subprocess
import sys
import zipfile

import pytest
import yaml

from seed_acme.programs import cli
from seed_acme.programs.pictures import plot
from seed_acme.programs.tools.packing import packing
from seed_acme.storage import opening
from seed_acme.storage import packed_run
from tests.programs.tools.packing import packed


@pytest.fixture(autouse=True)
def _signals(monkeypatch):
  monkeypatch.setattr(cli.signal, 'signal', lambda *_: None)


@pytest.fixture(scope='module', name='run')
def _run(tmp_path_factory):
  return packed.make(tmp_path_factory.mktemp('runs') / 'mine')


@pytest.fixture(scope='module', name='unlogged')
def _unlogged(tmp_path_factory):
  """A run without a log, of which no plot is drawn: that takes a second."""
  run = packed.make(tmp_path_factory.mktemp('runs') / 'unlogged')
  run.metrics.unlink()
  return run


@pytest.fixture(name='pack')
def _pack(tmp_path, capsys):
  """`pack(run, *arguments)`: packs without playing; returns the zip, and the output."""

  def call(run, *arguments, name='out.zip'):
    out = tmp_path / name
    given = ['pack', str(run.path), str(out), '--episodes=0', *arguments]
    assert cli.main(given) == 0
    return zipfile.ZipFile(out), capsys.readouterr()

  return call


def _refusal(capsys, *arguments):
  assert cli.main([*map(str, arguments)]) == 2
  output = capsys.readouterr()
  assert output.out == '' and len(output.err.splitlines()) <= 4
  return output.err


@pytest.mark.slow
def test_the_zip_holds_what_it_takes_and_record_and_card_say_what_it_is(run, pack):
  archive, said = pack(run, '--licence=CC-BY-4.0', '--json')
  assert set(archive.namelist()) == {
    'pack.json',
    'README.md',
    'config.json',
    'metrics.csv',
    'plot.png',
    f'checkpoints/{7:012d}/arrays.npz',
    f'checkpoints/{7:012d}/meta.json',
  }
  record = json.loads(archive.read('pack.json'))
  assert record == json.loads(said.out)
  assert (record['environment'], record['agent'], record['seed']) == ('catch', 'on_policy', 1)
  assert (record['agent_steps'], record['frames'], record['updates']) == (7000, 28_000, 7)
  assert record['licence'] == 'CC-BY-4.0' and record['code'] == []
  assert record['score'] == {
    'of': 'evaluation',
    'episodes': 2,
    'return_mean': 2.0,
    'return_standard_error': 1.0,
    'human_normalized_score': None,
  }
  assert {'seed_acme', 'python', 'tensorflow', 'dm-sonnet', 'dm-reverb'} <= set(record['stack'])
  assert archive.read('plot.png').startswith(b'\x89PNG')

  # The card is for people, and its head for hubs.
  card = archive.read('README.md').decode()
  _, head, body = card.split('---\n', 2)
  assert yaml.safe_load(head) == {
    'library_name': 'seed_acme',
    'license': 'CC-BY-4.0',
    'tags': ['reinforcement-learning', 'on_policy', 'catch'],
  }
  rows = dict(re.findall(r'^\| (\w+) \| (.*) \|$', body, re.MULTILINE))
  assert rows['environment'] == '`catch`' and rows['agent'] == '`on_policy`'
  assert rows['score'].startswith('2 ± 1: mean return and its standard error of 2 evaluation')
  assert rows['steps'] == '7,000 agent steps, 28,000 frames' and rows['updates'].startswith('7, ')
  assert rows['licence'] == 'CC-BY-4.0' and 'tensorflow 2.' in rows['stack']
  assert '![' in body and '(plot.png)' in body and '--config=catch_vtrace' in body


@pytest.mark.slow
def test_the_curve_has_the_name_of_the_run_not_of_the_folder_it_is_copied_to(
  tmp_path, pack, monkeypatch
):
  named, read_curve = [], plot.read_curve

  def note(path, label):
    named.append(label)
    return read_curve(path, label)

  monkeypatch.setattr(plot, 'read_curve', note)
  archive, _ = pack(packed.make(tmp_path / 'seed_1'))
  assert named == ['catch_vtrace/seed_1'] and 'plot.png' in archive.namelist()
  # What is packed is unpacked into another such folder to be packed again.
  assert cli.main(['pack', archive.filename, str(tmp_path / 'again.zip'), '--episodes=0']) == 0
  assert named[1:] == ['catch_vtrace/out.zip']


@pytest.mark.slow
def test_a_run_that_played_little_has_a_card_that_says_so(tmp_path, pack):
  few = packed.make(tmp_path / 'few', evaluation=[])
  few.metrics.unlink()
  archive, said = pack(few)
  score = json.loads(archive.read('pack.json'))['score']
  assert (score['of'], score['episodes'], score['return_standard_error']) == ('training', 1, None)
  card = archive.read('README.md').decode()
  assert 'licence | not stated' in card
  assert 'plot.png' not in archive.namelist()
  assert 'plot.png' not in card and said.err == ''


@pytest.mark.slow
def test_the_checkpoint_that_is_chosen_is_packed(unlogged, pack):
  archive, said = pack(unlogged, '--checkpoint=best')
  assert f'checkpoints/{3:012d}/arrays.npz' in archive.namelist()
  assert 'the checkpoint at 3,000 steps' in said.out
  assert len([name for name in archive.namelist() if name.endswith('.npz')]) == 1


@pytest.mark.slow
def test_a_video_is_packed_the_newest_of_the_run_or_the_one_that_is_given(tmp_path, pack):
  run = packed.make(tmp_path / 'filmed')
  run.metrics.unlink()  # no plot, which takes a second
  (run.path / 'videos').mkdir()
  (run.path / 'videos' / 'step_100.mp4').write_bytes(b'film')
  archive, _ = pack(run)
  assert (
    archive.read('video.mp4') == b'film' and '[video.mp4]' in archive.read('README.md').decode()
  )
  (tmp_path / 'own.gif').write_bytes(b'GIF89a')
  archive, _ = pack(run, f'--video={tmp_path / "own.gif"}', name='second.zip')
  assert archive.read('video.gif') == b'GIF89a' and 'video.mp4' not in archive.namelist()


@pytest.mark.slow
def test_the_newest_video_is_a_whole_film_not_its_preview(tmp_path, pack):
  run = packed.make(tmp_path / 'filmed')
  run.metrics.unlink()  # no plot, which takes a second
  run.videos.mkdir()
  for i, (name, content) in enumerate(
    [
      ('000000000050.mp4', b'earlier film'),
      ('000000000100.mp4', b'film'),
      ('000000000100.gif', b'GIF89a preview'),  # written after the film it shows
      ('000000000100.json', b'{}'),
      ('.000000000200.77.mp4', b'half a film'),
      ('.78.000000000100.gif', b'half a preview'),
    ]
  ):
    (run.videos / name).write_bytes(content)
    os.utime(run.videos / name, (1e9 + i, 1e9 + i))
  archive, _ = pack(run)
  assert archive.read('video.mp4') == b'film' and 'video.gif' not in archive.namelist()
  assert '[video.mp4]' in archive.read('README.md').decode()


@pytest.mark.slow
def test_a_video_that_goes_after_it_was_copied_is_packed_all_the_same(tmp_path, pack, monkeypatch):
  run = packed.make(tmp_path / 'filmed')
  run.metrics.unlink()  # no plot, which takes a second
  run.videos.mkdir()
  film = run.videos / '000000000100.mp4'
  film.write_bytes(b'film')
  write = packed_run.write

  def write_later(*arguments):
    film.unlink()
    write(*arguments)

  monkeypatch.setattr(packed_run, 'write', write_later)
  archive, _ = pack(run)
  assert archive.read('video.mp4') == b'film'


@pytest.mark.slow
def test_unpacked_it_is_a_run_again(run, pack, tmp_path, capsys):
  pack(run)
  assert cli.main(['unpack', str(tmp_path / 'out.zip'), str(tmp_path / 'theirs')]) == 0
  assert f'evaluate {tmp_path / "theirs"}' in capsys.readouterr().out
  there = opening.open_run(tmp_path / 'theirs')
  assert there.config.read_text() == run.config.read_text()
  assert there.metrics.read_text() == run.metrics.read_text()
  loaded = opening.load_of_run(there)
  assert loaded.meta == opening.load_of_run(run).meta and list(loaded.arrays) == ['acting/w']
  assert cli.main(['unpack', str(tmp_path / 'out.zip'), str(tmp_path / 'more'), '--json']) == 0
  assert json.loads(capsys.readouterr().out)['environment'] == 'catch'
  assert 'is there already' in _refusal(capsys, 'unpack', tmp_path / 'out.zip', tmp_path / 'theirs')


@pytest.mark.slow
def test_a_pack_is_packed_again(run, pack, tmp_path, capsys):
  pack(run)
  again = tmp_path / 'again.zip'
  assert cli.main(['pack', str(tmp_path / 'out.zip'), str(again), '--episodes=0']) == 0
  assert opening.load_checkpoint(str(again)).counts.updates == 7


@pytest.mark.slow
def test_code_of_ones_own_is_named_and_never_imported_unasked(tmp_path, pack, capsys, monkeypatch):
  (tmp_path / 'corridor_of_mine.py').write_text('raise SystemExit("imported")')
  monkeypatch.syspath_prepend(tmp_path)
  run = packed.make(tmp_path / 'own', environment='corridor_of_mine:make')
  run.metrics.unlink()  # no plot, which takes a second
  archive, _ = pack(run)
  assert json.loads(archive.read('pack.json'))['code'] == ['corridor_of_mine:make']
  card = archive.read('README.md').decode()
  assert 'needs code that is not in the file: `corridor_of_mine:make`' in card
  assert 'evaluate FILE.zip --trust_run_dir' in card
  out = tmp_path / 'out.zip'
  assert cli.main(['unpack', str(out), str(tmp_path / 'theirs')]) == 0
  said = capsys.readouterr().out
  assert 'corridor_of_mine:make' in said and said.rstrip().endswith('--trust_run_dir')
  for arguments in (('evaluate', out), ('pack', run.path, tmp_path / 'played.zip')):
    assert 'names code, environment.id=' in _refusal(capsys, *arguments)
  assert not (tmp_path / 'played.zip').exists()


@pytest.mark.parametrize(
  'arguments, said',
  [
    (['pack'], 'pack needs a run folder and the file to write'),
    (['pack', '{run}'], 'pack needs a run folder and the file to write'),
    (['pack', '{run}', '{tmp}/out.tar'], 'out.tar) must end in .zip'),
    (['pack', '{run}', '{tmp}/there.zip'], 'is there already: give the name of a new file'),
    (['pack', '{run}', 'gs://bucket/out.zip'], 'is in a bucket: give a local file'),
    (['pack', '{tmp}', '{tmp}/out.zip'], 'is not the folder of a run'),
    (['pack', '{tmp}/absent', '{tmp}/out.zip'], 'is no folder'),
    (['pack', '{run}', '{tmp}/out.zip', '--episodes=-1'], '--episodes (-1) must be >= 0'),
    (['pack', '{run}', '{tmp}/out.zip', '--checkpoint=5'], 'Its checkpoints are 3 (best), 7'),
    (['pack', '{run}', '{tmp}/out.zip', '--video=a.avi'], 'a.avi must end in .mp4 or .gif'),
    (['pack', '{run}', '{tmp}/out.zip', '--video=absent.mp4'], 'there is no video absent.mp4'),
    (['pack', '{run}', '{tmp}/there.zip/out.zip', '--episodes=0'], 'cannot write'),
    (['unpack'], 'unpack needs a packed run and the folder to make'),
    (['unpack', '{tmp}/there.zip'], 'unpack needs a packed run and the folder to make'),
    (['unpack', '{tmp}/there.zip', '{tmp}/out'], 'no zip at all'),
    (['unpack', '{tmp}/absent.zip', '{tmp}/out'], 'cannot read'),
    (['evaluate', '{tmp}/there.zip'], 'no zip at all'),
    (['plot', '{tmp}/there.zip'], 'no zip at all'),
  ],
)
def test_wrong_input_is_answered_in_words(run, tmp_path, capsys, arguments, said):
  (tmp_path / 'there.zip').write_text('')
  given = [argument.format(run=run.path, tmp=tmp_path) for argument in arguments]
  assert said in _refusal(capsys, *given)
  assert [path.name for path in tmp_path.iterdir()] == ['there.zip']


def test_a_checkpoint_that_a_live_run_deletes_meanwhile_is_said(run, tmp_path, capsys, monkeypatch):
  def gone(*_):
    raise FileNotFoundError(2, 'No such file or directory')

  monkeypatch.setattr(packing.shutil, 'copyfile', gone)
  message = _refusal(capsys, 'pack', run.path, tmp_path / 'out.zip', '--episodes=0')
  assert 'was deleted meanwhile by a live run: try again' in message


@pytest.mark.slow
def test_neither_loads_tensorflow_where_nothing_is_played(run, tmp_path):
  code = (
    'import sys; from seed_acme.programs import cli\n'
    f'run, out = {str(run.path)!r}, {str(tmp_path)!r}\n'
    'assert cli.main(["pack", run, out + "/a.zip", "--episodes=0"]) == 0\n'
    'assert cli.main(["unpack", out + "/a.zip", out + "/b"]) == 0\n'
    'sys.exit(any(m in sys.modules for m in ("tensorflow", "reverb", "sonnet", "launchpad")))'
  )
  assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0


def test_scores_of_thousands_are_written_out(tmp_path, pack):
  rich = packed.make(tmp_path / 'rich', evaluation=[(9e3, 9e3, 9), (12e3, 12e3, 9)])
  rich.metrics.unlink()
  archive, _ = pack(rich)
  assert '10,500 ± 1,500: mean return' in archive.read('README.md').decode()
