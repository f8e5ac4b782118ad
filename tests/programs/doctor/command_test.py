"""What `seed-acme doctor` prints."""

import json

import pytest

from seed_acme.programs.doctor import command
from seed_acme.programs.doctor import examination


@pytest.mark.parametrize('state, code', [('ok', 0), ('wrong', 1)])
def test_json_is_json(monkeypatch, capsys, state, code):
  monkeypatch.setattr(examination, 'run', lambda: [examination.Check('x', state, "it's")])
  assert command.doctor(command.DoctorArguments(json=True)) == code
  report = json.loads(capsys.readouterr().out)
  assert report['wrong'] == bool(code) and report['checks'][0]['detail'] == "it's"
