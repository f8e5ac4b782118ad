"""The runs whose topology is recorded: how each is launched, and its changes.

They have small configurations of their own, so that changes to experiments do not affect the
recording.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any

from seed_acme import config as config_lib
from seed_acme.agents.on_policy import presets
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.sac import config as sac_config

SINGLE, LOCAL, CLUSTER, VERTEX, KUBERNETES, AUTO = (
  'single_process',
  'local_mp',
  'cluster',
  'vertex_ai',
  'kubernetes',
  'auto',
)


@dataclasses.dataclass(frozen=True)
class Case:
  """A recorded run.

  replay: the kind of replay, which selects one of the agents below. fields: of the configuration,
    by dotted name. gpus: that TensorFlow finds on each learner host. resumptions: of the run so
    far. cluster: content of the cluster file. overridden: fields set on the command line of a node.
    settings: of `--cloud` for Vertex AI.
  """

  launch: str
  fields: Mapping[str, Any]
  replay: str = 'queue'
  gpus: int = 0
  resumptions: int = 0
  cluster: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  overridden: tuple[str, ...] = ()
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def config(self) -> config_lib.ExperimentConfig:
    config = config_lib.ExperimentConfig(
      name='topology',
      num_actors=2,
      environments_per_actor=4,
      environment=config_lib.EnvironmentConfig('catch'),
      network=config_lib.NetworkConfig(mlp_sizes=(8,)),
      agent=_AGENTS[self.replay],
      replay=config_lib.ReplayConfig(queue_size=48),
    )
    for name, value in self.fields.items():
      config = _replaced(config, name.split('.'), value)
    return config


_AGENTS: dict[str, config_lib.AgentConfig] = {
  'queue': presets.vtrace(unroll_length=10, batch_size=24),
  'prioritized': r2d2_config.R2D2Config(
    unroll_length=10, overlap=4, batch_size=24, replay_capacity=2400, replay_min_size=240
  ),
  'uniform': sac_config.SACConfig(
    unroll_length=1, batch_size=48, replay_capacity=4800, replay_min_size=480
  ),
}


def _replaced(record: Any, path: list[str], value: Any) -> Any:
  name, *rest = path
  inner = _replaced(getattr(record, name), rest, value) if rest else value
  return dataclasses.replace(record, **{name: inner})


def _of(launch: str, **more: Any) -> Any:
  """Returns a maker of cases for one launch; field names have `__` instead of the dot."""

  def make(replay: str = 'queue', gpus: int = 0, **fields: Any) -> Case:
    dotted = {name.replace('__', '.'): value for name, value in fields.items()}
    return Case(launch, dotted, replay, gpus, **more)

  return make


def _node(overridden: tuple[str, ...] = (), **cluster: Any) -> Any:
  """Returns a maker of cases for a cluster file with this content."""
  content = {'learner': '10.0.0.1:8000', 'actors': 2, **cluster}
  return _of(CLUSTER, cluster=content, overridden=overridden)


def _hosts(number: int, port: int = 8000) -> list[str]:
  return [f'10.0.0.{i + 1}:{port}' for i in range(number)]


_single, _local, _auto = _of(SINGLE), _of(LOCAL), _of(AUTO)
_vertex = _of(VERTEX)
_kubernetes = _of(KUBERNETES)
_UNEVEN: dict[str, Any] = {
  'num_actors': 5,
  'environments_per_actor': 3,
  'num_evaluation_environments': 2,
}
_TWO_HOSTS: dict[str, Any] = {'num_learner_hosts': 2}
_TWO_SHARDS: dict[str, Any] = {'replay__num_shards': 2}
_SEPARATE: dict[str, Any] = {'replay__separate_process': True}
_STRICT: dict[str, Any] = {'inference__strictly_on_policy': True}

_ONE_MACHINE: dict[str, Case] = {
  # One process.
  'one process': _single(),
  'one process, uneven actors and evaluation': _single(**_UNEVEN),
  'one process, two groups': _single(actor__environment_groups=2, num_evaluation_environments=3),
  'one process, one actor': _single(num_actors=1, environments_per_actor=1),
  'one process, strictly on-policy': _single(**_STRICT, agent__batch_size=24, num_actors=3),
  'one process, given inference batch': _single(inference__batch_size=6),
  'one process, two shards': _single(**_TWO_SHARDS, num_actors=4),
  'one process, three shards and evaluation': _single(
    replay__num_shards=3, num_actors=6, environments_per_actor=2, num_evaluation_environments=1
  ),
  'one process, prioritized memory': _single('prioritized'),
  'one process, prioritized memory in two shards': _single(
    'prioritized', **_TWO_SHARDS, replay__port=7100
  ),
  'one process, uniform memory': _single('uniform', num_actors=1, environments_per_actor=5),
  'one process, two CPUs act': _single(num_actors=3, learner__inference_devices='cpu:0,cpu:1'),
  'one process, two GPUs': _single(gpus=2),
  'one process, resumed twice': dataclasses.replace(_single(**_UNEVEN), resumptions=2),
  # Processes of one learner host.
  'processes': _local(),
  'processes, uneven actors and evaluation': _local(**_UNEVEN),
  'processes, one actor': _local(num_actors=1, environments_per_actor=1),
  'processes, two groups': _local(actor__environment_groups=2, num_evaluation_environments=3),
  'processes, given inference batch': _local(inference__batch_size=7),
  'processes, items of four unrolls': _local(replay__unrolls_per_item=4),
  'processes, given backlog and no batch ahead': _local(
    replay__writer_backlog=5, replay__prefetch_batches=0
  ),
  'processes, fixed ports': _local(transport__port=7000, replay__port=7100),
  'processes, gRPC': _local(transport__kind='grpc', transport__host='0.0.0.0'),
  'processes, strictly on-policy': _local(**_STRICT, agent__batch_size=24, num_actors=3),
  'processes, prioritized memory': _local('prioritized', num_evaluation_environments=1),
  'processes, uniform memory': _local('uniform', **_UNEVEN),
  'processes, resumed twice': dataclasses.replace(_local(**_UNEVEN), resumptions=2),
  # Shards.
  'two shards': _local(**_TWO_SHARDS, num_actors=4),
  'two shards at fixed ports': _local(**_TWO_SHARDS, replay__port=7100),
  'four shards, groups and evaluation': _local(
    replay__num_shards=4, num_actors=8, actor__environment_groups=2, num_evaluation_environments=2
  ),
  'three shards, items of four unrolls': _local(
    replay__num_shards=3, num_actors=3, replay__unrolls_per_item=4
  ),
  'two shards of a prioritized memory': _local('prioritized', **_TWO_SHARDS, num_actors=4),
  'replay of its own process': _local(**_SEPARATE),
  'replay of its own process at a fixed port': _local(**_SEPARATE, replay__port=7100),
  'two replay processes': _local(**_SEPARATE, **_TWO_SHARDS, num_actors=4, replay__port=7100),
  'two replay processes of a uniform memory': _local('uniform', **_SEPARATE, **_TWO_SHARDS),
  # Devices.
  'one GPU': _local(gpus=1),
  'two GPUs': _local(gpus=2, num_actors=3),
  'four GPUs': _local(gpus=4, num_actors=5),
  'four GPUs, two act': _local(gpus=4, num_actors=5, learner__inference_devices='2'),
  'four GPUs, one trains': _local(gpus=4, num_actors=4, learner__training_devices='1'),
  'four GPUs, one trains and two actors': _local(gpus=4, learner__training_devices='1'),
  'named GPUs': _local(
    gpus=3,
    num_actors=7,
    environments_per_actor=3,
    num_evaluation_environments=4,
    learner__training_devices='gpu:0,gpu:1',
    learner__inference_devices='gpu:1,gpu:2',
  ),
  'three CPUs act on given batches': _local(
    num_actors=4, inference__batch_size=6, learner__inference_devices='cpu:0,cpu:1,cpu:2'
  ),
  'two GPUs, two groups of each actor': _local(
    gpus=2, num_actors=3, actor__environment_groups=2, learner__inference_devices='2'
  ),
  'two GPUs and two shards': _local(
    gpus=2, num_actors=8, **_TWO_SHARDS, learner__inference_devices='2'
  ),
  # Learner hosts.
  'two hosts': _local(**_TWO_HOSTS),
  'two hosts, uneven actors and evaluation': _local(**_TWO_HOSTS, **_UNEVEN),
  'three hosts, seven actors': _local(
    num_learner_hosts=3, num_actors=7, num_evaluation_environments=1
  ),
  'four hosts, six actors, two groups': _local(
    num_learner_hosts=4, num_actors=6, actor__environment_groups=2
  ),
  'two hosts, fixed ports': _local(**_TWO_HOSTS, transport__port=7000, replay__port=7100),
  'two hosts, gRPC': _local(**_TWO_HOSTS, transport__kind='grpc'),
  'two hosts, given inference batch': _local(**_TWO_HOSTS, num_actors=3, inference__batch_size=6),
  'two hosts, strictly on-policy': _local(
    **_TWO_HOSTS, **_STRICT, agent__batch_size=24, num_actors=6
  ),
  'two hosts, items of eight unrolls': _local(**_TWO_HOSTS, replay__unrolls_per_item=8),
  'two hosts, prioritized memory': _local('prioritized', **_TWO_HOSTS, num_actors=3),
  'two hosts, resumed once': dataclasses.replace(_local(**_TWO_HOSTS, **_UNEVEN), resumptions=1),
  'two hosts, two shards': _local(**_TWO_HOSTS, **_TWO_SHARDS, num_actors=8),
  'two hosts, two shards of a memory': _local(
    'prioritized', **_TWO_HOSTS, **_TWO_SHARDS, num_actors=4, replay__port=7100
  ),
  'two hosts, two shards, two GPUs': _local(
    gpus=2,
    **_TWO_HOSTS,
    **_TWO_SHARDS,
    num_actors=8,
    num_evaluation_environments=2,
    learner__inference_devices='2',
  ),
  'two hosts, three GPUs act, seven actors': _local(
    gpus=3, **_TWO_HOSTS, num_actors=7, learner__inference_devices='3'
  ),
  'three hosts, two shards': _local(
    num_learner_hosts=3,
    **_TWO_SHARDS,
    num_actors=12,
    environments_per_actor=2,
    num_evaluation_environments=5,
  ),
}

_ANY_HOSTS: dict[str, Case] = {
  'cluster': _node()(),
  'cluster, listens elsewhere': _node(listen='0.0.0.0:9000', fence=False)(),
  'cluster, actors by host': _node(actors=['10.0.1.1', '10.0.1.2', '10.0.1.3'])(
    num_evaluation_environments=2, actor__environment_groups=2
  ),
  'cluster, fixed replay port': _node(admit=['10.0.0.9'])(replay__port=7100),
  'cluster, replay node': _node(replay='10.0.0.2:8001')(num_evaluation_environments=1),
  'cluster, replay node of a memory': _node(replay='10.0.0.2:8001')('prioritized'),
  'cluster, two shards': _node(actors=4)(**_TWO_SHARDS),
  'cluster, two GPUs': _node(actors=3)(gpus=2, learner__inference_devices='2'),
  'cluster, IPv6': _node(learner='[fd00::1]:8000')(),
  'cluster, two learner hosts': _node(
    learner=_hosts(2), exchange=_hosts(2, 8002), actors=5, listen='0.0.0.0:8000'
  )(num_evaluation_environments=2),
  'cluster, three learner hosts': _node(learner=_hosts(3), exchange=_hosts(3, 8002), actors=7)(
    environments_per_actor=2, num_evaluation_environments=1
  ),
  'cluster, two learner hosts and two shards': _node(
    learner=_hosts(2), exchange=_hosts(2, 8002), actors=4
  )('prioritized', **_TWO_SHARDS),
  'Kubernetes': _kubernetes(num_evaluation_environments=1),
  'Kubernetes, replay node': _kubernetes(**_SEPARATE),
  'Kubernetes, three learner hosts': _kubernetes(num_learner_hosts=3, num_actors=4),
}

# Made by Launchpad's and xmanager's launchers, whose import takes seconds.
ON_VERTEX: dict[str, Case] = {
  'Vertex AI': _vertex(num_evaluation_environments=1),
  'Vertex AI, replay node': _vertex('prioritized', **_SEPARATE),
  'Vertex AI, two shards': _vertex(**_TWO_SHARDS, num_actors=4),
  'Vertex AI, two learner hosts': _vertex(**_TWO_HOSTS, **_UNEVEN),
  'Vertex AI, three learner hosts and two shards': _vertex(
    num_learner_hosts=3, **_TWO_SHARDS, num_actors=6, actor__environment_groups=2
  ),
}

_CHOSEN: dict[str, Case] = {
  'auto': _auto(),
  'auto, one actor that waits for its learner': _auto(
    num_actors=1, environments_per_actor=4, **_STRICT
  ),
  'auto, two learner hosts': _auto(**_TWO_HOSTS),
  'auto, named devices': _auto(num_actors=3, learner__inference_devices='cpu:0,cpu:1'),
  'auto, a GPU': _auto(gpus=1),
  'auto, replay of its own process': _auto(**_SEPARATE),
}

_REFUSED: dict[str, Case] = {
  'no learner host': _local(num_learner_hosts=0),
  'no actor': _local(num_actors=0),
  'no environment': _local(environments_per_actor=0),
  'less than no evaluation': _local(num_evaluation_environments=-1),
  'no shard': _local(replay__num_shards=0),
  'groups that do not divide': _local(environments_per_actor=3, actor__environment_groups=2),
  'items that do not divide': _local(replay__unrolls_per_item=7),
  'a queue smaller than a batch': _local(replay__queue_size=23),
  'a great inference batch': _local(inference__batch_size=9),
  'strictly on-policy, a batch that does not divide': _local(**_STRICT, num_actors=7),
  'strictly on-policy, a memory': _local('prioritized', **_STRICT),
  'more devices than actors': _local(learner__inference_devices='cpu:0,cpu:1,cpu:2'),
  'more training devices than unrolls': _local(
    agent__batch_size=1, learner__training_devices='cpu:0,cpu:1'
  ),
  'a GPU that is not there': _local(gpus=1, learner__training_devices='gpu:1'),
  'more GPUs than there are': _local(gpus=1, learner__inference_devices='2'),
  'fewer actors than hosts': _local(num_learner_hosts=3),
  'hosts that do not divide a batch': _local(num_learner_hosts=5, num_actors=5),
  'hosts that do not divide a queue': _local(**_TWO_HOSTS, replay__queue_size=49),
  'hosts that do not divide a memory': _local(
    'prioritized', **_TWO_HOSTS, agent__replay_capacity=2401
  ),
  'hosts that do not divide actors, strictly on-policy': _local(
    **_TWO_HOSTS, **_STRICT, num_actors=3, environments_per_actor=4
  ),
  'hosts and XLA': _local(**_TWO_HOSTS, learner__xla=True),
  'hosts and a replay process': _local(**_TWO_HOSTS, **_SEPARATE),
  'hosts without patience': _local(**_TWO_HOSTS, learner__host_timeout_s=0.0),
  'hosts with fewer actors than devices': _local(
    **_TWO_HOSTS, num_actors=3, learner__inference_devices='cpu:0,cpu:1'
  ),
  'shards that do not divide actors': _local(**_TWO_SHARDS, num_actors=3),
  'shards that do not divide a batch': _local(**_TWO_SHARDS, agent__batch_size=23),
  'shards that do not divide the least of a memory': _local(
    'prioritized', **_TWO_SHARDS, agent__replay_min_size=241
  ),
  'shards of hosts that do not divide actors': _local(**_TWO_HOSTS, **_TWO_SHARDS, num_actors=6),
  'one process, two learner hosts': _single(**_TWO_HOSTS),
  'cluster, exchange of one learner host': _node(exchange=_hosts(1, 8002))(),
  'cluster, no exchange of two': _node(learner=_hosts(2))(),
  'cluster, other number of actors': _node(overridden=('num_actors',))(num_actors=3),
  'cluster, other number of learner hosts': _node(overridden=('num_learner_hosts',))(**_TWO_HOSTS),
  'cluster, other port': _node(overridden=('transport.port',))(transport__port=7000),
  'cluster, courier': _node()(transport__kind='courier'),
  'cluster, a replay node without address': _node()(**_SEPARATE),
  'cluster, a replay node of two shards': _node(replay='10.0.0.2:8001')(**_TWO_SHARDS),
  'cluster, films': _node()(num_evaluation_environments=1, record_every=1000),
  'Kubernetes, a replay node of two shards': _kubernetes(**_SEPARATE, **_TWO_SHARDS),
  'Kubernetes, courier': _kubernetes(transport__kind='courier'),
  'Vertex AI, a replay node of two shards': _vertex(**_SEPARATE, **_TWO_SHARDS),
  'Vertex AI, courier': _vertex(transport__kind='courier'),
  'Vertex AI, two hosts and a replay node': _vertex(**_TWO_HOSTS, **_SEPARATE),
  'Vertex AI, a machine for no replay node': dataclasses.replace(
    _vertex(), settings={'replay': 'n1-highmem-4'}
  ),
}

QUICK: dict[str, Case] = {**_ONE_MACHINE, **_ANY_HOSTS, **_CHOSEN, **_REFUSED}
CASES: dict[str, Case] = {**QUICK, **ON_VERTEX}
