"""A certificate authority that lives as long as the tests, and a server that speaks TLS with it."""

import contextlib
import functools
import socket
import ssl

import trustme
from gate_harness import spawn


@functools.cache
def authority():
    return trustme.CA()


def server_context(*, wants_client=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert("localhost", "127.0.0.1", "model.example").configure_cert(context)
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        authority().configure_trust(context)
    return context


def client_context(*, certificate=False):
    context = ssl.create_default_context()
    authority().configure_trust(context)
    if certificate:
        authority().issue_cert("caller@example.org").configure_cert(context)
    return context


@contextlib.contextmanager
def authority_file(folder):
    """The path of a file with the authority's certificate."""
    path = folder / "authority.pem"
    authority().cert_pem.write_to_path(str(path))
    yield str(path)


@contextlib.contextmanager
def tls_server(answer, *, wants_client=False):
    """Gives the same answer to every request; its port."""
    context = server_context(wants_client=wants_client)
    listener = socket.create_server(("127.0.0.1", 0))

    def talk(plain):
        with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
            while connection.recv(65536):
                connection.sendall(answer)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                spawn(lambda plain=plain: talk(plain))

    spawn(serve)
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
