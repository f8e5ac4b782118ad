"""A stand-in for Google Cloud Storage that TensorFlow's own client for gs:// talks to.

`python fake_gcs.py FOLDER` serves until it is killed: an HTTPS proxy that answers in place of
Google's hosts, with its own certificate. Objects are stored in FOLDER/objects, one file each. Once
it serves, FOLDER/environment.json has the environment variables for clients. A bucket called
`forbidden` refuses access.
"""

import datetime
import http.server
import json
import pathlib
import ssl
import sys
import threading
import urllib.parse

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_HOSTS = ('www.googleapis.com', 'storage.googleapis.com', 'oauth2.googleapis.com')
_UPDATED = '2026-01-01T00:00:00.000Z'


def _make_certificate(folder):
  key = ec.generate_private_key(ec.SECP256R1())
  name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, 'fake storage')])
  now = datetime.datetime.now(datetime.timezone.utc)
  day = datetime.timedelta(days=1)
  certificate = (
    x509.CertificateBuilder()
    .subject_name(name)
    .issuer_name(name)
    .public_key(key.public_key())
    .serial_number(1)
    .not_valid_before(now - day)
    .not_valid_after(now + day)
    .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in _HOSTS]), False)
    .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    .sign(key, hashes.SHA256())
  )
  pem = serialization.Encoding.PEM
  (folder / 'ca.pem').write_bytes(certificate.public_bytes(pem))
  (folder / 'key.pem').write_bytes(
    key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
  )
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.load_cert_chain(folder / 'ca.pem', folder / 'key.pem')
  return context


class Objects:
  """Objects by (bucket, name), each in a file that is written atomically."""

  def __init__(self, folder):
    self._folder = folder

  def _path(self, bucket, name):
    return self._folder / bucket / urllib.parse.quote(name, safe='')

  def write(self, bucket, name, content):
    path = self._path(bucket, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own for each request, because they are served in threads.
    temporary = path.with_name(f'.writing-{threading.get_ident()}')
    temporary.write_bytes(content)
    temporary.replace(path)

  def read(self, bucket, name):
    path = self._path(bucket, name)
    return path.read_bytes() if path.exists() else None

  def delete(self, bucket, name):
    path = self._path(bucket, name)
    path.unlink(missing_ok=True)

  def names(self, bucket, prefix):
    found = (urllib.parse.unquote(path.name) for path in (self._folder / bucket).glob('[!.]*'))
    return sorted(name for name in found if name.startswith(prefix))


class Handler(http.server.BaseHTTPRequestHandler):
  protocol_version = 'HTTP/1.1'
  tls = None
  objects = None

  def do_CONNECT(self):
    self.send_response(200)
    self.end_headers()
    self.connection = self.tls.wrap_socket(self.connection, server_side=True)
    self.rfile = self.connection.makefile('rb')
    self.wfile = self.connection.makefile('wb', 0)
    self.close_connection = False

  def log_message(self, *_):
    pass

  def _answer(self, code, content=b'', **headers):
    self.send_response(code)
    for name, value in headers.items():
      self.send_header(name.replace('_', '-'), value)
    self.send_header('Content-Length', str(len(content)))
    self.end_headers()
    self.wfile.write(content)

  def _split(self):
    """Returns (path segments, query, body)."""
    url = urllib.parse.urlsplit(self.path)
    parts = [urllib.parse.unquote(part) for part in url.path.strip('/').split('/')]
    if self.headers.get('Transfer-Encoding') == 'chunked':  # curl sends it along with a length
      body = b''.join(self._chunks())
    else:
      body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
    return parts, dict(urllib.parse.parse_qsl(url.query)), body

  def _chunks(self):
    while size := int(self.rfile.readline(), 16):
      yield self.rfile.read(size)
      self.rfile.readline()
    self.rfile.readline()

  def do_GET(self):
    parts, query, _ = self._split()
    if 'forbidden' in parts:
      self._answer(403)
    elif self.headers['Host'].startswith('storage.'):
      self._media(parts[0], '/'.join(parts[1:]))
    elif len(parts) == 4:  # the bucket itself
      self._answer(200, json.dumps({'name': parts[3], 'location': 'US'}).encode())
    elif len(parts) == 5:
      self._list(parts[3], query)
    else:
      self._metadata(parts[3], parts[5])

  def _metadata(self, bucket, name):
    content = self.objects.read(bucket, name)
    if content is None:
      self._answer(404)
    else:
      self._answer(
        200,
        json.dumps({'size': str(len(content)), 'generation': '1', 'updated': _UPDATED}).encode(),
      )

  def _media(self, bucket, name):
    content = self.objects.read(bucket, name)
    if content is None:
      self._answer(404)
      return
    first, _, last = self.headers.get('Range', 'bytes=0-').removeprefix('bytes=').partition('-')
    if int(first) >= len(content):
      self._answer(416)
    else:
      self._answer(206, content[int(first) : int(last) + 1 if last else None])

  def _list(self, bucket, query):
    prefix, delimiter = query.get('prefix', ''), query.get('delimiter')
    items, prefixes = [], set()
    for name in self.objects.names(bucket, prefix):
      below, found, _ = name[len(prefix) :].partition(delimiter or '\0')
      if found:
        prefixes.add(prefix + below + delimiter)
      else:
        items.append(
          {
            'name': name,
            'size': str(len(self.objects.read(bucket, name) or b'')),
            'updated': _UPDATED,
          }
        )
    most = int(query.get('maxResults', '1000'))
    self._answer(200, json.dumps({'items': items[:most], 'prefixes': sorted(prefixes)}).encode())

  def do_POST(self):
    parts, query, body = self._split()
    if 'forbidden' in parts:
      self._answer(403)
    elif query.get('uploadType') == 'media':  # an object that represents a folder
      self.objects.write(parts[4], query['name'], body)
      self._answer(200, b'{}')
    elif parts[0] == 'upload':
      session = urllib.parse.quote(json.dumps([parts[4], query['name']]), safe='')
      self._answer(200, Location=f'https://www.googleapis.com/session/{session}')
    else:  # storage/v1/b/B/o/NAME/rewriteTo/b/B/o/NAME
      self.objects.write(parts[8], parts[10], self.objects.read(parts[3], parts[5]))
      self._answer(200, b'{"done": true}')

  def do_PUT(self):
    parts, _, body = self._split()
    bucket, name = json.loads(parts[1])
    if '*' in self.headers.get('Content-Range', '') and not self.headers['Content-Range'].endswith(
      '/0'
    ):  # a query for the upload's progress
      self._answer(308)
      return
    self.objects.write(bucket, name, body)
    self._answer(200, b'{}')

  def do_DELETE(self):
    parts, _, _ = self._split()
    self.objects.delete(parts[3], parts[5])
    self._answer(204)


def main(folder):
  Handler.tls = _make_certificate(folder)
  Handler.objects = Objects(folder / 'objects')
  server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
  temporary = folder / 'environment.tmp'
  temporary.write_text(
    json.dumps(
      {
        'https_proxy': f'http://127.0.0.1:{server.server_port}',
        'no_proxy': 'localhost,127.0.0.1,0.0.0.0',
        'CURL_CA_BUNDLE': str(folder / 'ca.pem'),
        'GOOGLE_AUTH_TOKEN_FOR_TESTING': 'fake',
        'NO_GCE_CHECK': 'true',
      }
    )
  )
  temporary.rename(folder / 'environment.json')
  server.serve_forever()


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]))
