"""Counts unrolls on their way through all shards."""

from __future__ import annotations

from collections.abc import Sequence

from seed_acme.replay import account as account_lib


class Accounts:
  """The accounts of all shards as one `core.UnrollAccount`."""

  def __init__(self, accounts: Sequence[account_lib.Account]):
    self._accounts = tuple(accounts)

  def confirmed(self) -> int:
    """See `core.UnrollAccount`."""
    return sum(account.confirmed() for account in self._accounts)

  def received(self) -> int:
    """See `core.UnrollAccount`."""
    return sum(account.received() for account in self._accounts)

  def missing(self) -> str:
    """See `core.UnrollAccount`."""
    return self._of_each([account.missing() for account in self._accounts])

  def waiting_for(self) -> str:
    """Describes, as `Account` does, the shards whose part of the next batch has not come."""
    rounds = [account.received() for account in self._accounts]
    return self._of_each(
      [
        account.waiting_for() if received == min(rounds) else ''
        for account, received in zip(self._accounts, rounds)
      ]
    )

  def _of_each(self, texts: Sequence[str]) -> str:
    """Joins the texts that are not empty, naming their shards if there are several."""
    if len(texts) == 1:
      return texts[0]
    return '; '.join(f'replay shard {i}: {text}' for i, text in enumerate(texts) if text)
