"""The output of `seed-acme doctor`."""

import json

import pytest

from seed_acme.programs.tools.doctor import command
from seed_acme.programs.tools.doctor import examination
from seed_acme.programs.tools.doctor import suites


@pytest.mark.parametrize('state, code', [('ok', 0), ('wrong', 1)])
def test_json_is_json(monkeypatch, state, code):
  monkeypatch.setattr(examination, 'run', lambda: [examination.Check('x', state, "it's")])
  monkeypatch.setattr(suites, 'examine', list)  # no suite is tried
  answer = command.doctor(command.DoctorArguments())
  report = json.loads(json.dumps(answer.record))
  assert answer.exit_code == code and "it's" in answer.text
  assert report['wrong'] == bool(code) and report['checks'][0]['detail'] == "it's"
