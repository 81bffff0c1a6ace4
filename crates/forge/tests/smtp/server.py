"""A mail server for tests: takes mails from whoever logs in as forge, and prints each as a line of JSON.

The first line is the port. Recipients called refused@... are refused for good; those called later@... the first time.
"""

import asyncio
import json
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Taking:
    def __init__(self):
        self.put_off = set()

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused@"):
            return "550 nobody is called that"
        if address.startswith("later@") and address not in self.put_off:
            self.put_off.add(address)
            return "451 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "user": session.auth_data and session.auth_data.login.decode(),
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "data": envelope.content.decode("ascii"),
        }
        print(json.dumps(mail), flush=True)
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    known = data.login == b"forge" and data.password == b"p@ss word"
    # "Handled" would mean that the answer was sent already.
    return AuthResult(success=known, handled=known, auth_data=data)


async def main():
    loop = asyncio.get_running_loop()
    taking = Taking()

    def connection():
        return SMTP(taking, authenticator=authenticate, auth_required=True, auth_require_tls=False)

    server = await loop.create_server(connection, host="127.0.0.1", port=0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
