"""The nodes of a run started one by one, here all on one machine."""

import json

from tests import ports

TOKEN = 'a-token-of-the-run'


class Cluster:
  """The nodes of one run; `settings` go into the cluster file."""

  def __init__(self, runs, folder, actors=1, config='catch_vtrace', **settings):
    self._runs, self._config, self.folder = runs, config, folder
    self.port = ports.unused()
    self.settings = {
      'learner': f'localhost:{self.port}',
      'actors': actors,
      'token': TOKEN,
      **settings,
    }
    self.write('cluster.json', **self.settings)

  def start_without(self, *arguments):
    """Starts a program in the cluster's folder without the cluster file."""
    return self._runs.start(*arguments, folder=self.folder)

  def write(self, name, **settings):
    path = self.folder / name
    path.write_text(json.dumps(settings))
    path.chmod(0o600)

  def start(self, role, *arguments, cluster='cluster.json', small=True):
    smaller = self._runs.small[1:] if small else ()  # the cluster file gives the number of actors
    return self._runs.start(
      'node',
      role,
      f'--config={self._config}',
      f'--cluster={cluster}',
      *smaller,
      *arguments,
      folder=self.folder,
    )

  def learner(self, *arguments, **settings):
    return self.start('learner', '--run_dir=run', *arguments, **settings)

  def actor(self, *arguments, **settings):
    return self.start('actor', *arguments, **settings)
