// What a published nostr library does with a relay: publish, subscribe, hear what is new, count, prove a key.
//
// Started by the test `nostr_tools_works_unchanged` with the directory that nostr-tools is installed in; the setting
// comes on standard input: {"relay": URL, "repo": COORDINATE}.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , installed] = process.argv;
const from = (name) => import(pathToFileURL(`${installed}/node_modules/nostr-tools/lib/esm/${name}.js`));
const { Relay } = await from("relay");
const { finalizeEvent, generateSecretKey } = await from("pure");
const { relay: url, repo } = JSON.parse(readFileSync(0, "utf8"));

const secret = generateSecretKey();
const now = Math.floor(Date.now() / 1000);
const issue = (content) => finalizeEvent({ kind: 1621, created_at: now, tags: [["a", repo]], content }, secret);
const filter = { kinds: [1621], "#a": [repo] };

const relay = await Relay.connect(url);
const listener = await Relay.connect(url);

const stored = issue("stored");
assert.equal(await relay.publish(stored), "");
assert.match(await relay.publish(stored), /^duplicate: /);
await assert.rejects(
  relay.publish(finalizeEvent({ kind: 1, created_at: now, tags: [], content: "unrelated" }, secret)),
  /restricted: /,
);

const heard = [];
let tell;
const live = new Promise((resolve) => (tell = resolve));
await new Promise((resolve) => {
  listener.subscribe([filter], {
    onevent(event) {
      heard.push(event.content);
      if (event.content === "live") tell();
    },
    oneose: resolve,
  });
});
assert.deepEqual(heard, ["stored"]);
await relay.publish(issue("live"));
await live;
assert.deepEqual(heard, ["stored", "live"]);

assert.equal(await relay.count([filter], {}), 2);
// The challenge is told to whoever answers another one.
const signed = (template) => finalizeEvent(template, secret);
await new Promise((resolve) => {
  relay.onauth = (template) => (resolve(), signed(template));
  relay.send(JSON.stringify(["AUTH", signed({ kind: 22242, created_at: 0, tags: [], content: "" })]));
});
await relay.auth(signed);

relay.close();
listener.close();
