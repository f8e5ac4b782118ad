import os
import shutil
import stat

from numpy.linalg import lapack_lite
import pytest

from seed_acme.programs.system import graphics


def test_a_tensorflow_without_cuda_needs_no_further_reason():
  unseen = graphics.why_unseen(False, ['no_such_library.so'])
  assert 'without CUDA' in unseen.reason and unseen.fix == 'make setup CUDA=1'


def test_libraries_that_cannot_be_loaded_are_named():
  unseen = graphics.why_unseen(True, ['libc.so.6', 'no_such_library.so', 'nor_this.so.8'])
  assert unseen.reason == 'no_such_library.so, nor_this.so.8 cannot be loaded'
  assert 'make setup CUDA=1' in unseen.fix


def test_of_the_driver_alone_nothing_but_the_driver_is_asked_for():
  unseen = graphics.why_unseen(True, ['no_such_driver.so', 'libc.so.6'])
  assert unseen.reason == 'no_such_driver.so cannot be loaded' and 'driver' in unseen.fix
  assert 'make' not in unseen.fix


def test_libraries_in_the_wheels_of_nvidia_are_found(tmp_path, monkeypatch):
  folder = tmp_path / 'nvidia' / 'cudnn' / 'lib'
  folder.mkdir(parents=True)
  shutil.copy(lapack_lite.__file__, folder / 'its.so.8')
  monkeypatch.syspath_prepend(tmp_path)
  assert 'all its libraries' in graphics.why_unseen(True, ['its.so.8']).reason


def test_cards_are_those_that_the_drivers_tool_lists(tmp_path, monkeypatch):
  tool = tmp_path / 'nvidia-smi'
  asked = '--query-gpu=name,driver_version,memory.total'
  tool.write_text(f'#!/bin/sh\n[ "$1" = {asked} ] && echo "A card, 550.1"\n')
  tool.chmod(0o755)
  monkeypatch.setenv('PATH', f'{tmp_path}{os.pathsep}{os.environ["PATH"]}')
  assert graphics.cards() == ['A card, 550.1']
  tool.write_text('#!/bin/sh\nexit 9\n')
  assert graphics.cards() == []


def test_the_cache_of_compiled_kernels_is_named_with_its_size(tmp_path, monkeypatch):
  (tmp_path / 'kernel').write_bytes(bytes(3 * 2**20))
  monkeypatch.setenv('CUDA_CACHE_PATH', str(tmp_path))
  assert graphics.cache() == f'kernels are kept in {tmp_path} (3 MiB)'


def test_with_all_libraries_there_what_is_left_is_named():
  assert 'CUDA_VISIBLE_DEVICES' in graphics.why_unseen(True, ['libc.so.6']).fix


@pytest.mark.skipif(graphics.is_there(), reason='there is a GPU')
def test_tools_of_the_driver_show_that_there_is_a_gpu(tmp_path, monkeypatch):
  tool = tmp_path / 'nvidia-smi'
  tool.write_text('#!/bin/sh\n')
  tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
  monkeypatch.setenv('PATH', f'{tmp_path}{os.pathsep}{os.environ["PATH"]}')
  assert graphics.is_there()
