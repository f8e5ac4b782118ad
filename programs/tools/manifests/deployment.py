"""What a manifest is made from beside the configuration: names, images, machines, storage."""

from __future__ import annotations

import dataclasses
from typing import Any

Object = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Placement:
  """What the pods of a role ask the scheduler for; gpus is a limit, too.

  node_selector: labels that a machine must have. tolerations: as a pod's specification has them.
  """

  image: str
  cpu: str
  memory: str
  node_selector: dict[str, str]
  tolerations: tuple[Object, ...]
  gpus: int = 0


@dataclasses.dataclass(frozen=True)
class Deployment:
  """Everything about the run that is not its configuration.

  name: of the run; all objects begin with it. token: '' = the Secret `token_secret` exists.
  image_pull_secret: Secret of kind docker-registry; '' = the images are public, or the cluster
    knows.
  storage: size of the volume claim; '' = a folder that is lost with the learner's pod.
  retries: of each node before its Job fails; a preemption is none. saving_s: how long saving
    the replay memory may take at the end.
  """

  name: str
  namespace: str
  image_pull_secret: str
  token_secret: str
  token: str
  storage: str
  storage_class: str
  retries: int
  saving_s: float
  placements: dict[str, Placement]  # by role
