"""The input of a manifest besides the configuration: names, images, machines, storage."""

from __future__ import annotations

import dataclasses
from typing import Any

Object = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Placement:
  """The requests of a role's pods to the scheduler; gpus is also their limit.

  node_selector: labels that a machine must have. tolerations: in the form of a pod's specification.
  """

  image: str
  cpu: str
  memory: str
  node_selector: dict[str, str]
  tolerations: tuple[Object, ...]
  gpus: int = 0


@dataclasses.dataclass(frozen=True)
class Deployment:
  """Everything about the run's deployment that its configuration does not say.

  name: name of the run, which all objects' names begin with. token: '' = the Secret `token_secret`
    exists.
  image_pull_secret: Secret of kind docker-registry; '' = the images are public, or the cluster has
    credentials.
  storage: size of the volume claim; '' = a folder that is lost with the learner's pod.
  retries: failures of a node before its Job fails; preemptions do not count. saving_s: how long
    saving the replay memory may take at the end.
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
