// A receiver of webhooks as people write one for GitHub.
//
// Started by the test `library` with the directory that @octokit/webhooks is installed in; its secret comes on standard
// input: {"secret": TEXT}. Says where it listens, then a line for every event that was verified and taken.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [, , installed] = process.argv;
const library = `${installed}/node_modules/@octokit/webhooks/dist-bundle/index.js`;
const { Webhooks, createNodeMiddleware } = await import(pathToFileURL(library));
const { secret } = JSON.parse(readFileSync(0, "utf8"));
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const webhooks = new Webhooks({ secret, log: { debug() {}, info() {}, warn() {}, error() {} } });
webhooks.onAny(({ id, name, payload }) => {
  const { action, changes, repository } = payload;
  say({ id, name: action ? `${name}.${action}` : name, repository: repository.full_name, changes });
});
webhooks.onError((error) => say({ error: error.message }));

const middleware = createNodeMiddleware(webhooks, { path: "/hook" });
const server = createServer(async (request, response) => {
  if (!(await middleware(request, response))) {
    response.writeHead(404).end();
  }
});
server.listen(0, "127.0.0.1", () => say({ url: `http://127.0.0.1:${server.address().port}/hook` }));
