"""The addresses of learner hosts, from Vertex AI's variable."""

import json

from seed_acme.programs.vertex import exchange


def test_the_exchange_is_at_the_port_after_the_one_that_is_named(monkeypatch):
  cluster = {'workerpool0': ['chief-0:2222'], 'workerpool1': ['other-0:2222', 'other-1:3333']}
  monkeypatch.setenv('CLUSTER_SPEC', json.dumps({'cluster': cluster}))
  monkeypatch.setenv('TF_CONFIG', 'no JSON')
  assert exchange.NextPort('workerpool0', 0).build() == 'chief-0:2223'
  assert exchange.NextPort('workerpool1', 1).build() == 'other-1:3334'
