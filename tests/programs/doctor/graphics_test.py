import os
import stat

import pytest

from seed_acme.programs.doctor import graphics


def test_a_tensorflow_without_cuda_needs_no_further_reason():
  unseen = graphics.why_unseen(False, ['no_such_library.so'])
  assert 'without CUDA' in unseen.reason and 'Dockerfile.gpu' in unseen.fix


def test_libraries_that_cannot_be_loaded_are_named():
  unseen = graphics.why_unseen(True, ['libc.so.6', 'no_such_library.so', 'nor_this.so.8'])
  assert unseen.reason == 'no_such_library.so, nor_this.so.8 cannot be loaded'
  assert 'LD_LIBRARY_PATH' in unseen.fix


def test_with_all_libraries_there_what_is_left_is_named():
  assert 'CUDA_VISIBLE_DEVICES' in graphics.why_unseen(True, ['libc.so.6']).fix


@pytest.mark.skipif(graphics.is_there(), reason='there is a GPU')
def test_tools_of_the_driver_show_that_there_is_a_gpu(tmp_path, monkeypatch):
  tool = tmp_path / 'nvidia-smi'
  tool.write_text('#!/bin/sh\n')
  tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
  monkeypatch.setenv('PATH', f'{tmp_path}{os.pathsep}{os.environ["PATH"]}')
  assert graphics.is_there()
