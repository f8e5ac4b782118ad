"""The card of a packed run: README.md, with the front matter that model hubs read."""

from __future__ import annotations

import json
import re
from typing import Any

from seed_acme.configs import registry as configs
from seed_acme.loggers import terminal

_OF_SCORE = {
  'played': 'greedy episodes that these weights played when they were packed',
  'evaluation': 'evaluation episodes during training, the last before these weights were saved',
  'training': 'training episodes, the last before these weights were saved',
}
_NETWORK = ('torso', 'core')
_TEXT = """---
library_name: seed_acme
license: {license}
tags: {tags}
---

# {config} on {environment}

| | |
|---|---|
{rows}

{pictures}## Use it

`FILE.zip` is the zip with this card. The folder that `seed-acme unpack` makes of it serves as well.

```text
seed-acme evaluate FILE.zip{trust}
seed-acme train --config={config_name} --config.initial_checkpoint=FILE.zip
seed-acme unpack FILE.zip FOLDER
```

{code}`config.json` holds every setting of the run, `metrics.csv` its log. The checkpoint has the
weights and the state of the optimisers. The replay memory is not in it.
"""


def text(record: dict[str, Any], has_curve: bool, video: str) -> str:
  """Returns the card. record: contents of `pack.json`. video: the name of the file; '' = none."""
  rows = {
    'environment': _code(record['environment']) + _settings(record['environment_settings']),
    'agent': _code(record['agent']),
    'network': ', '.join(f'{part} {_code(record[part])}' for part in _NETWORK if record[part]),
    'score': _score(record['score']),
    'steps': f'{record["agent_steps"]:,} agent steps, {record["frames"]:,} frames',
    'updates': f'{record["updates"]:,}, in {terminal.duration(record["wall_s"])} of wall time',
    'seed': str(record['seed']),
    'stack': ', '.join(f'{name} {version}' for name, version in record['stack'].items()),
    'licence': _plain(record['licence']) or 'not stated: ask whoever has packed this',
  }
  pictures = '![Episode return against agent steps](plot.png)\n\n' if has_curve else ''
  if video:
    pictures += f'One episode: [{video}]({video})\n\n'
  code = ''
  if record['code']:
    named = ', '.join(_code(path) for path in record['code'])
    code = (
      f'The run needs code that is not in the file: {named}. Only `--trust_run_dir` imports it.\n\n'
    )
  return _TEXT.format(
    license=json.dumps(record['licence'] or 'unknown'),
    tags=json.dumps(['reinforcement-learning', record['agent'], record['environment']]),
    config=_plain(record['config']),
    # The name of the user's own configuration means nothing to others.
    config_name=record['config'] if record['config'] in configs.names() else 'YOURS',
    environment=_plain(record['environment']),
    rows='\n'.join(f'| {name} | {value} |' for name, value in rows.items()),
    pictures=pictures,
    code=code,
    trust=' --trust_run_dir' if record['code'] else '',
  )


def _score(score: dict[str, Any] | None) -> str:
  if score is None:
    return 'no episode had ended'
  error, human = score['return_standard_error'], score['human_normalized_score']
  return (
    terminal.number(score['return_mean'])
    + f'{"" if error is None else f" ± {terminal.number(error, 2)}"}'
    f'{"" if human is None else f", human-normalised {human:.3f}"}: mean return'
    f'{"" if error is None else " and its standard error"} of {score["episodes"]:,} '
    f'{_OF_SCORE[score["of"]]}'
  )


def _settings(settings: dict[str, Any]) -> str:
  return f' with {_code(json.dumps(settings))}' if settings else ''


def _plain(value: str) -> str:
  """Escapes the characters that mean something in Markdown."""
  return re.sub(r'([\\`*\[\]<>|#])', r'\\\1', ' '.join(value.split()))


def _code(value: str) -> str:
  return '`' + ' '.join(value.split()).replace('`', "'").replace('|', '\\|') + '`'
