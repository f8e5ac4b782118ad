"""`--launch=vertex_ai`: a job on Google's Vertex AI, which runs on without this machine."""

from __future__ import annotations

from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.programs.front_end import launches
from seed_acme.programs.vertex import command as vertex_command


class Launch(launches.Launch):
  """The launch that submits the job."""

  def refuse(self, layout: layout_lib.Layout) -> None:
    """Refuses several replay nodes."""
    launches.refuse_shards_elsewhere(layout)

  def start(
    self, run: launches.Run, layout: layout_lib.Layout, supervision: launches.Supervision
  ) -> launches.Outcome:
    """Submits the job. It needs a command line, because only that has the cloud's settings."""
    assert run.command is not None
    arguments, names_config, words = run.command
    if supervision.max_restarts or arguments.json:
      raise types.UserError(
        '--max_restarts and --json are not for --launch=vertex_ai, which '
        'restarts nodes by itself: leave them out'
      )
    if arguments.run_dir and not names_config:
      raise types.UserError(
        '--launch=vertex_ai with --run_dir needs --config=NAME_OR_PATH, the same as before'
      )
    request = vertex_command.Request(
      run.config, arguments.cloud, arguments.run_dir, arguments.dry_run, arguments.out, words
    )
    return launches.Outcome(vertex_command.train(request), {}, None)
