"""Remote calls between processes of a program: `Server` binds functions, `Client` calls them.

The interface is that of DeepMind's courier. This package replaces its compiled half; `client.py`
and `py_server.py` are DeepMind's own. It cannot talk to the compiled courier.
Arguments and results are pickled, so anyone who may call can run code. A server therefore listens
on this machine alone, unless `COURIER_HOST` says otherwise, and answers only callers that hold its
token (`COURIER_TOKEN`, or `courier.credentials`).
"""

from courier.python.client import Client
from courier.python.client import list_methods
from courier.python.credentials import credentials
from courier.python.py_server import Server
from courier.python.status import StatusNotOk

__all__ = ['Client', 'Server', 'StatusNotOk', 'credentials', 'list_methods']
