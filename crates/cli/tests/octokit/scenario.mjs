// Abide through Octokit, unchanged but for its base URL.
//
// Started by the test `octokit` with the directory that Octokit is installed in; the server is described on standard
// input: {"api": URL, "owner": NAME, "token": TOKEN, "friend": NAME, "friend_token": TOKEN, "pushed": REPOSITORY,
// "tip": COMMIT}

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const [, , installed] = process.argv;
const { Octokit } = await import(pathToFileURL(`${installed}/node_modules/@octokit/rest/dist-src/index.js`));
const server = JSON.parse(readFileSync(0, "utf8"));

const client = (token) => new Octokit({ baseUrl: server.api, auth: token, log: { ...console, warn: () => {} } });
const octokit = client(server.token);
const at = { owner: server.owner, repo: server.pushed };
const status = (expected) => (error) => error.status === expected;

test("the caller is who the token says", async () => {
  const { data } = await octokit.rest.users.getAuthenticated();
  assert.equal(data.login, server.owner);
  await assert.rejects(client("abide_pat_wrong").rest.users.getAuthenticated(), status(401));
});

test("a repository is created with a first commit, edited, listed and deleted", async () => {
  const { data: made } = await octokit.rest.repos.createForAuthenticatedUser({
    name: "js-new",
    auto_init: true,
    license_template: "mit",
    gitignore_template: "Node",
  });
  const one = { owner: server.owner, repo: made.name };
  assert.equal(made.default_branch, "main");
  const { data: root } = await octokit.rest.repos.getContent({ ...one, path: "" });
  assert.deepEqual(root.map((entry) => entry.name).sort(), [".gitignore", "LICENSE", "README.md"]);
  const { data: edited } = await octokit.rest.repos.update({ ...one, description: "By Octokit" });
  assert.equal(edited.description, "By Octokit");
  const all = await octokit.paginate(octokit.rest.repos.listForAuthenticatedUser, { per_page: 1 });
  assert.ok(all.some((repo) => repo.id === made.id));
  await octokit.rest.repos.delete(one);
  await assert.rejects(octokit.rest.repos.get(one), status(404));
});

test("issues are found across repositories", async () => {
  const { data: made } = await octokit.rest.repos.createForAuthenticatedUser({ name: "js-issues" });
  const one = { owner: server.owner, repo: made.name };
  const { data: issue } = await octokit.rest.issues.create({ ...one, title: "Octopus", assignees: [server.owner] });
  const { data: found } = await octokit.rest.search.issuesAndPullRequests({ q: "octopus is:issue is:open author:@me" });
  assert.deepEqual([found.total_count, found.items[0].id], [1, issue.id]);
  const mine = await octokit.paginate(octokit.rest.issues.list, { per_page: 1 });
  assert.ok(mine.some((other) => other.id === issue.id && other.repository.full_name === made.full_name));
  await octokit.rest.issues.createComment({ ...one, issue_number: 1, body: "eight arms" });
  const { data: comments } = await octokit.rest.issues.listCommentsForRepo(one);
  assert.deepEqual(comments.map((comment) => comment.body), ["eight arms"]);
  const { data: events } = await octokit.rest.issues.listEvents({ ...one, issue_number: 1 });
  assert.deepEqual(events.map((event) => event.event), ["assigned"]);
  const { status: able } = await octokit.rest.issues.checkUserCanBeAssigned({ ...one, assignee: server.owner });
  assert.equal(able, 204);
  await assert.rejects(octokit.rest.issues.checkUserCanBeAssigned({ ...one, assignee: server.friend }), status(404));
  await octokit.rest.repos.delete(one);
});

test("branches with slashes, tags and refs are found", async () => {
  const branches = await octokit.paginate(octokit.rest.repos.listBranches, { ...at, per_page: 1 });
  assert.deepEqual(branches.map((branch) => branch.name), ["feature/x", "main"]);
  const { data: branch } = await octokit.rest.repos.getBranch({ ...at, branch: "feature/x" });
  assert.equal(branch.commit.sha, server.tip);
  const { data: tags } = await octokit.rest.repos.listTags(at);
  assert.equal(tags.length, 2);
  const { data: ref } = await octokit.rest.git.getRef({ ...at, ref: "heads/feature/x" });
  assert.equal(ref.object.sha, server.tip);
  const { data: refs } = await octokit.rest.git.listMatchingRefs({ ...at, ref: "tags/v" });
  assert.equal(refs.length, 2);
  const annotated = refs.find((one) => one.object.type === "tag");
  const { data: tag } = await octokit.rest.git.getTag({ ...at, tag_sha: annotated.object.sha });
  assert.equal(tag.tag, "v1.0");
});

test("commits are listed, read and compared", async () => {
  const commits = await octokit.paginate(octokit.rest.repos.listCommits, { ...at, sha: "feature/x", per_page: 2 });
  assert.equal(commits.length, 4);
  assert.equal(commits[0].sha, server.tip);
  const { data: commit } = await octokit.rest.repos.getCommit({ ...at, ref: "feature/x" });
  assert.equal(commit.files[0].status, "renamed");
  const { data: diff } = await octokit.rest.repos.getCommit({ ...at, ref: "main", mediaType: { format: "diff" } });
  assert.match(diff, /^diff --git a\/src\/lib.rs b\/src\/lib.rs\n/);
  const { data: compared } = await octokit.rest.repos.compareCommitsWithBasehead({ ...at, basehead: "main...feature/x" });
  assert.equal(compared.status, "ahead");
  assert.equal(compared.commits.length, 1);
});

test("files, trees and blobs are read", async () => {
  const { data: file } = await octokit.rest.repos.getContent({ ...at, path: "src/lib.rs" });
  assert.equal(Buffer.from(file.content, file.encoding).toString(), "//! Two.\n\npub fn one() {}\n");
  const { data: raw } = await octokit.rest.repos.getContent({ ...at, path: "src/lib.rs", mediaType: { format: "raw" } });
  assert.equal(raw instanceof ArrayBuffer ? Buffer.from(raw).toString() : raw, "//! Two.\n\npub fn one() {}\n");
  const { data: readme } = await octokit.rest.repos.getReadme(at);
  assert.equal(readme.path, "README.md");
  const { data: tree } = await octokit.rest.git.getTree({ ...at, tree_sha: "main", recursive: "1" });
  assert.equal(tree.truncated, false);
  const entry = tree.tree.find((one) => one.path === "src/lib.rs");
  const { data: blob } = await octokit.rest.git.getBlob({ ...at, file_sha: entry.sha });
  assert.equal(blob.content, file.content);
  await assert.rejects(octokit.rest.repos.getContent({ ...at, path: "absent" }), status(404));
});

test("a repository is forked, tagged with topics and found", async () => {
  const friend = client(server.friend_token);
  const { status: accepted, data: fork } = await friend.rest.repos.createFork(at);
  assert.equal(accepted, 202);
  assert.equal(fork.parent.full_name, `${server.owner}/${server.pushed}`);
  const { data: forks } = await octokit.rest.repos.listForks(at);
  assert.deepEqual(forks.map((one) => one.full_name), [`${server.friend}/${server.pushed}`]);
  await octokit.rest.repos.replaceAllTopics({ ...at, names: ["octokit-topic"] });
  const { data: topics } = await friend.rest.repos.getAllTopics(at);
  assert.deepEqual(topics.names, ["octokit-topic"]);
  const { data: found } = await friend.rest.search.repos({ q: "topic:octokit-topic" });
  assert.equal(found.total_count, 1);
  assert.equal(found.items[0].full_name, `${server.owner}/${server.pushed}`);
});

test("a repository is renamed, archived, handed over, and found by its old names", async () => {
  const friend = client(server.friend_token);
  const { data: made } = await octokit.rest.repos.createForAuthenticatedUser({ name: "js-before" });
  const before = { owner: server.owner, repo: made.name };
  const { data: renamed } = await octokit.rest.repos.update({ ...before, name: "js-after" });
  assert.equal(renamed.full_name, `${server.owner}/js-after`);
  const { data: found } = await octokit.rest.repos.get(before);
  assert.equal(found.id, made.id);

  const after = { owner: server.owner, repo: "js-after" };
  assert.equal((await octokit.rest.repos.update({ ...after, archived: true })).data.archived, true);
  await assert.rejects(octokit.rest.repos.update({ ...after, description: "too late" }), status(403));
  assert.equal((await octokit.rest.repos.update({ ...after, archived: false })).data.archived, false);

  const { status: offered, data: offer } = await octokit.rest.repos.transfer({ ...after, new_owner: server.friend });
  assert.equal(offered, 202);
  assert.equal(offer.status, "pending");
  const offers = await friend.paginate("GET /user/repository_transfers", { per_page: 1 });
  assert.ok(offers.some((one) => one.id === offer.id));
  const { data: taken } = await friend.request("POST /repository_transfers/{id}/accept", { id: offer.id });
  assert.equal(taken.repository.full_name, `${server.friend}/js-after`);
  for (const old of [before, after]) {
    assert.equal((await friend.rest.repos.get(old)).data.full_name, `${server.friend}/js-after`);
    assert.equal((await friend.rest.repos.listBranches(old)).status, 200);
  }
  const again = octokit.request("POST /repository_transfers/{id}/cancel", { id: offer.id });
  await assert.rejects(again, status(409));

  await friend.rest.repos.delete({ owner: server.friend, repo: "js-after" });
  await assert.rejects(friend.rest.repos.get(before), status(404));
  const { data: restored } = await friend.request("POST /repositories/{id}/restore", { id: made.id });
  assert.equal(restored.id, made.id);
});

test("a repository is starred and watched, and a friend is followed", async () => {
  const friend = client(server.friend_token);
  const { activity, users } = friend.rest;
  await assert.rejects(activity.checkRepoIsStarredByAuthenticatedUser(at), status(404));
  await activity.starRepoForAuthenticatedUser(at);
  assert.equal((await activity.checkRepoIsStarredByAuthenticatedUser(at)).status, 204);
  const { data: plain } = await octokit.rest.activity.listStargazersForRepo(at);
  assert.deepEqual(plain.map((one) => one.login), [server.friend]);
  const { data: dated } = await octokit.rest.activity.listStargazersForRepo({ ...at, mediaType: { format: "star" } });
  assert.ok(!Number.isNaN(Date.parse(dated[0].starred_at)));
  const { data: starred } = await activity.listReposStarredByAuthenticatedUser();
  assert.deepEqual(starred.map((one) => one.name), [server.pushed]);
  await activity.unstarRepoForAuthenticatedUser(at);

  const { data: set } = await activity.setRepoSubscription({ ...at, subscribed: true });
  assert.equal(set.subscribed, true);
  assert.equal((await octokit.rest.repos.get(at)).data.subscribers_count, 2);
  const { data: watchers } = await octokit.rest.activity.listWatchersForRepo(at);
  assert.deepEqual(watchers.map((one) => one.login).sort(), ["alice", server.friend].sort());
  await assert.rejects(activity.listWatchersForRepo(at), status(403));
  await activity.deleteRepoSubscription(at);
  await assert.rejects(activity.getRepoSubscription(at), status(404));

  await users.follow({ username: server.owner });
  const { data: followers } = await octokit.rest.users.listFollowersForAuthenticatedUser();
  assert.deepEqual(followers.map((one) => one.login), [server.friend]);
  await users.unfollow({ username: server.owner });
});

test("what is known is not sent again, and the limit is told", async () => {
  const { headers } = await octokit.rest.repos.get(at);
  assert.ok(Number(headers["x-ratelimit-remaining"]) > 0);
  const again = octokit.rest.repos.get({ ...at, headers: { "if-none-match": headers.etag } });
  await assert.rejects(again, status(304));
  const { data } = await octokit.rest.rateLimit.get();
  assert.ok(data.rate.remaining < data.rate.limit);
});
