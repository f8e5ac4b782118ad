"""Names and options that both sides of the gRPC transport share."""

from __future__ import annotations

SERVICE = 'seed_acme.Inference'
STREAM, JOIN = 'Stream', 'Join'  # methods; both take a stream that begins with a greeting
TOKEN_KEY = 'seed-acme-token'
OVER = b'over'

NO_LIMIT = -1
# A peer that vanishes silently is noticed after the sum of the two. If data is in flight, the
# kernel notices sooner: it gives up on unacknowledged data after the timeout alone.
_KEEPALIVE_MS = 2_000
_KEEPALIVE_TIMEOUT_MS = 3_000
OPTIONS = [
  ('grpc.keepalive_time_ms', _KEEPALIVE_MS),
  ('grpc.keepalive_timeout_ms', _KEEPALIVE_TIMEOUT_MS),
  # gRPC sends no keepalive ping while another of its pings is unanswered, and would by default
  # wait a minute for that answer.
  ('grpc.http2.ping_timeout_ms', _KEEPALIVE_TIMEOUT_MS),
  ('grpc.keepalive_permit_without_calls', 1),
  ('grpc.http2.max_pings_without_data', 0),
  ('grpc.http2.min_ping_interval_without_data_ms', _KEEPALIVE_MS // 2),
  ('grpc.max_send_message_length', NO_LIMIT),
]


def method(name: str) -> str:
  """Returns the full name of a method of the service."""
  return f'/{SERVICE}/{name}'
