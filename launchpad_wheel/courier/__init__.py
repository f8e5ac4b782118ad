"""Remote calls between processes of a program: `Server` binds functions, `Client` calls them.

The interface is that of DeepMind's courier, whose compiled half this package replaces; `client.py`
and `py_server.py` are still its own. It does not speak with the compiled one.

Arguments and results are pickled: whoever may call can run code. So a server listens on this
machine alone, unless `COURIER_HOST` says otherwise, and answers only those that hold its token
(`COURIER_TOKEN`, or `courier.credentials`).
"""

from courier.python.client import Client
from courier.python.client import list_methods
from courier.python.credentials import credentials
from courier.python.py_server import Server
from courier.python.status import StatusNotOk

__all__ = ['Client', 'Server', 'StatusNotOk', 'credentials', 'list_methods']
