"""Abide through PyGithub, unchanged but for its base URL.

Started by the test `pygithub`, which describes the server on standard input:
{"api": URL, "owner": NAME, "token": TOKEN, "read_token": TOKEN, "hooks_token": TOKEN, "receiver": URL, "friend": NAME, "friend_token": TOKEN,
"inbox_token": TOKEN, "pushed": REPOSITORY, "key": LINE}
"""

import json
import sys
import time
import unittest
from datetime import datetime, timezone

from github import Auth, BadCredentialsException, Github, GithubException, UnknownObjectException

SERVER = json.load(sys.stdin)


def client(token, per_page=30):
    """PyGithub waits between requests to spare github.com; nobody needs that here. Nor should an error be retried."""
    return Github(
        base_url=SERVER["api"],
        auth=Auth.Token(token),
        per_page=per_page,
        retry=None,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )


class Scenario(unittest.TestCase):
    def setUp(self):
        self.github = client(SERVER["token"])
        self.me = self.github.get_user()

    def create(self, name, **options):
        repo = self.me.create_repo(name, **options)
        self.addCleanup(self.delete_quietly, repo.id)
        return repo

    def delete_quietly(self, repo_id):
        try:
            self.github.get_repo(repo_id).delete()
        except UnknownObjectException:
            pass

    def field_errors(self, error, status=422):
        self.assertEqual(error.status, status, error)
        return [(entry["field"], entry["code"]) for entry in error.data["errors"]]


class Account(Scenario):
    def test_the_caller_is_who_the_token_says(self):
        self.assertEqual(self.me.login, SERVER["owner"])
        self.assertEqual(self.me.type, "User")
        self.assertEqual(self.me.email, SERVER["owner"] + "@example.org")
        self.assertIsNotNone(self.me.created_at.tzinfo)

    def test_another_person_is_shown_without_their_address(self):
        friend = self.github.get_user(SERVER["friend"])
        self.assertEqual(friend.login, SERVER["friend"])
        self.assertIsNone(friend.email)

    def test_a_bad_token_is_refused(self):
        with self.assertRaises(BadCredentialsException) as caught:
            client("abide_pat_wrong").get_user().login
        self.assertEqual(caught.exception.status, 401)
        self.assertEqual(caught.exception.data["message"], "Bad credentials")


class Issues(Scenario):
    def test_one_is_opened_discussed_labelled_and_closed(self):
        repo = self.create("py-issues")
        repo.create_label("bug", "d73a4a", "Broken")
        plan = repo.create_milestone("v1")
        issue = repo.create_issue("It crashes", body="At start", labels=["bug"], milestone=plan)
        self.assertEqual((issue.number, issue.state, issue.user.login), (1, "open", SERVER["owner"]))
        self.assertEqual([label.color for label in issue.labels], ["d73a4a"])
        comment = issue.create_comment("Looking at it")
        comment.edit("Looked at it")
        self.assertEqual([said.body for said in issue.get_comments()], ["Looked at it"])
        issue.add_to_labels("ui")
        self.assertEqual([label.name for label in issue.get_labels()], ["bug", "ui"])
        issue.remove_from_labels("ui")
        issue.set_labels("bug", "later")
        issue.add_to_assignees(SERVER["owner"])
        self.assertEqual([who.login for who in repo.get_issue(1).assignees], [SERVER["owner"]])
        self.assertEqual(self.github.get_repo(repo.id).open_issues_count, 1)
        issue.edit(state="closed", state_reason="not_planned")
        self.assertEqual((issue.state, issue.state_reason), ("closed", "not_planned"))
        self.assertEqual(repo.get_issues().totalCount, 0)
        self.assertEqual([found.number for found in repo.get_issues(state="closed", labels=["bug"])], [1])
        self.assertEqual(repo.get_milestone(plan.number).closed_issues, 1)
        events = [event.event for event in issue.get_timeline()]
        self.assertEqual((events[0], events[-1]), ("labeled", "closed"))
        comment.delete()
        with self.assertRaises(UnknownObjectException):
            repo.get_issue(2)

    def test_they_are_found_across_repositories(self):
        owner, friend = SERVER["owner"], client(SERVER["friend_token"])
        repo, hidden = self.create("py-found"), self.create("py-hidden", private=True)
        issue = repo.create_issue("Unheard-of crash", body="@" + SERVER["friend"], assignee=owner)
        hidden.create_issue("Unheard-of plan")
        found = self.github.search_issues("unheard-of", sort="created", order="asc")
        self.assertEqual([one.title for one in found], ["Unheard-of crash", "Unheard-of plan"])
        self.assertEqual(found.totalCount, 2)
        self.assertEqual(found[0].repository.full_name, repo.full_name)
        narrow = friend.search_issues("unheard-of", repo=repo.full_name, state="open", author=owner, type="issue")
        self.assertEqual([one.id for one in narrow], [issue.id])
        self.assertEqual(friend.search_issues("unheard-of", repo=hidden.full_name).totalCount, 0)
        self.assertEqual([one.id for one in self.me.get_issues() if one.repository.id == repo.id], [issue.id])
        self.assertIn(issue.id, [one.id for one in self.me.get_user_issues(filter="created", sort="updated")])
        self.assertIn(issue.id, [one.id for one in friend.get_user().get_issues(filter="mentioned")])

        first = issue.create_comment("first")
        issue.create_comment("second")
        first.edit("changed")
        self.assertEqual([said.body for said in repo.get_issues_comments()], ["changed", "second"])
        latest = repo.get_issues_comments(sort="updated", direction="desc", since=first.created_at)
        self.assertEqual([said.body for said in latest], ["changed", "second"])
        self.assertTrue(repo.has_in_assignees(owner))
        self.assertFalse(repo.has_in_assignees(SERVER["friend"]))
        issue.edit(title="Crash", state="closed")
        events = list(issue.get_events())
        self.assertEqual(sorted(event.event for event in events), ["assigned", "closed", "renamed"])
        self.assertEqual({event.actor.login for event in events}, {owner})


class Repositories(Scenario):
    def test_a_public_one_is_created_and_read_again(self):
        created = self.create("py-public", description="Made by PyGithub")
        read = self.github.get_repo(f"{SERVER['owner']}/py-public")
        self.assertEqual(read.id, created.id)
        self.assertEqual(read.description, "Made by PyGithub")
        self.assertEqual(read.owner.login, SERVER["owner"])
        self.assertEqual(read.full_name, f"{SERVER['owner']}/py-public")
        self.assertEqual((read.private, read.visibility), (False, "public"))
        self.assertEqual(read.default_branch, "main")
        self.assertTrue(read.permissions.admin)
        self.assertTrue(read.clone_url.endswith("/py-public.git"))

    def test_a_private_one_is_there_for_its_owner_alone(self):
        self.assertTrue(self.create("py-private", private=True).private)
        nobody = Github(base_url=SERVER["api"], retry=None)
        with self.assertRaises(UnknownObjectException):
            nobody.get_repo(f"{SERVER['owner']}/py-private")

    def test_one_is_found_by_its_id(self):
        created = self.create("py-by-id")
        self.assertEqual(self.github.get_repo(created.id).name, "py-by-id")

    def test_lists_are_followed_over_all_their_pages(self):
        names = {f"py-list-{number}" for number in range(5)}
        for name in names:
            self.create(name, private=name.endswith("0"))
        paged = client(SERVER["token"], per_page=2)
        mine = [repo.name for repo in paged.get_user().get_repos()]
        self.assertLessEqual(names, set(mine))
        self.assertEqual(len(mine), len(set(mine)), "a repository is on two pages")
        self.assertEqual(paged.get_user().get_repos().totalCount, len(mine))
        public = {repo.name for repo in paged.get_user(SERVER["owner"]).get_repos()}
        self.assertLessEqual(names, public, "the owner sees all of their own")
        backwards = [repo.name for repo in paged.get_user().get_repos().reversed]
        self.assertEqual(backwards, mine[::-1])

    def test_description_and_visibility_are_edited(self):
        repo = self.create("py-edit", description="first")
        repo.edit(description="second")
        self.assertEqual(repo.description, "second")
        repo.edit(private=True)
        self.assertTrue(self.github.get_repo(repo.id).private)
        repo.edit(private=False, description="")
        again = self.github.get_repo(repo.id)
        self.assertEqual((again.private, again.description), (False, None))

    def test_the_default_branch_is_one_that_was_pushed(self):
        repo = self.me.get_repo(SERVER["pushed"])
        self.assertIsNotNone(repo.pushed_at)
        repo.edit(default_branch="trunk")
        self.assertEqual(self.github.get_repo(repo.id).default_branch, "trunk")
        with self.assertRaises(GithubException) as caught:
            repo.edit(default_branch="absent")
        self.assertEqual(self.field_errors(caught.exception), [("default_branch", "invalid")])

    def test_a_deleted_one_is_gone_and_its_name_is_free(self):
        first = self.create("py-delete")
        first.delete()
        with self.assertRaises(UnknownObjectException):
            self.github.get_repo(first.id)
        with self.assertRaises(UnknownObjectException):
            first.delete()
        self.assertNotEqual(self.create("py-delete").id, first.id)

    def test_what_is_not_there_is_not_found(self):
        for address in [f"{SERVER['owner']}/absent", "absent/absent", 987654321]:
            with self.assertRaises(UnknownObjectException) as caught:
                self.github.get_repo(address)
            self.assertEqual(caught.exception.status, 404)

    def test_a_bad_or_taken_name_is_named(self):
        self.create("py-taken")
        for name, status, code in [("py taken", 422, "invalid"), (".git", 422, "invalid"), ("py-taken", 409, "custom")]:
            with self.assertRaises(GithubException) as caught:
                self.me.create_repo(name)
            self.assertEqual(self.field_errors(caught.exception, status), [("name", code)])

    def test_a_token_for_reading_does_not_create(self):
        with self.assertRaises(GithubException) as caught:
            client(SERVER["read_token"]).get_user().create_repo("py-read")
        self.assertEqual(caught.exception.status, 403)
        self.assertIn("the repo scope", caught.exception.data["message"])


class Content(Scenario):
    def setUp(self):
        super().setUp()
        self.repo = self.create("py-content", auto_init=True, license_template="mit", gitignore_template="Python")

    def test_a_new_repository_can_begin_with_files(self):
        names = {entry.name: entry for entry in self.repo.get_contents("")}
        self.assertEqual(set(names), {"README.md", "LICENSE", ".gitignore"})
        self.assertEqual(names["README.md"].decoded_content, b"# py-content\n")
        self.assertEqual(self.repo.get_readme().path, "README.md")
        self.assertIn(b"__pycache__", self.repo.get_contents(".gitignore").decoded_content)
        with self.assertRaises(UnknownObjectException):
            self.repo.get_contents("absent")

    def test_branches_and_refs_lead_to_commits(self):
        (branch,) = self.repo.get_branches()
        self.assertEqual((branch.name, branch.protected), ("main", False))
        tip = self.repo.get_branch("main").commit
        self.assertEqual(tip.sha, branch.commit.sha)
        self.assertEqual(tip.commit.message, "Initial commit")
        self.assertEqual(self.repo.get_git_ref("heads/main").object.sha, tip.sha)
        self.assertEqual([ref.ref for ref in self.repo.get_git_refs()], ["refs/heads/main"])
        self.assertEqual([ref.ref for ref in self.repo.get_git_matching_refs("heads/")], ["refs/heads/main"])
        self.assertEqual(list(self.repo.get_tags()), [])

    def test_commits_trees_and_blobs_are_read(self):
        commits = self.repo.get_commits()
        self.assertEqual(commits.totalCount, 1)
        commit = self.repo.get_commit(commits[0].sha)
        self.assertEqual({file.status for file in commit.files}, {"added"})
        self.assertEqual(commit.stats.deletions, 0)
        self.assertIsNotNone(commit.commit.author.date.tzinfo)
        tree = self.repo.get_git_tree("main", recursive=True)
        self.assertEqual([entry.path for entry in tree.tree], [".gitignore", "LICENSE", "README.md"])
        blob = self.repo.get_git_blob(tree.tree[2].sha)
        self.assertEqual((blob.encoding, blob.size), ("base64", len(b"# py-content\n")))
        self.assertEqual(self.repo.get_git_commit(commit.sha).tree.sha, tree.sha)
        compared = self.repo.compare("main", "main")
        self.assertEqual((compared.status, compared.total_commits), ("identical", 0))

    def test_it_is_forked_and_found_by_its_topic(self):
        friend = client(SERVER["friend_token"])
        fork = friend.get_repo(self.repo.id).create_fork()
        self.assertEqual(fork.full_name, f"{SERVER['friend']}/py-content")
        self.assertEqual(fork.parent.id, self.repo.id)
        self.assertEqual([one.full_name for one in self.repo.get_forks()], [fork.full_name])
        self.repo.replace_topics(["py-topic"])
        self.assertEqual(self.repo.get_topics(), ["py-topic"])
        found = friend.search_repositories("topic:py-topic")
        self.assertEqual([one.full_name for one in found], [self.repo.full_name])
        fork.delete()

    def test_the_limit_is_told(self):
        rate = self.github.get_rate_limit().rate
        self.assertLess(rate.remaining, rate.limit)
        self.assertEqual(self.github.rate_limiting[1], rate.limit)


class Life(Scenario):
    def test_one_is_renamed_and_found_by_its_old_name(self):
        repo = self.create("py-before")
        old = repo.full_name
        repo.edit(name="py-after")
        self.assertEqual((repo.name, repo.full_name), ("py-after", f"{SERVER['owner']}/py-after"))
        again = self.github.get_repo(old)
        self.assertEqual((again.id, again.name), (repo.id, "py-after"))
        # What is below it is there by the old name too, without going elsewhere.
        _, topics = again.requester.requestJsonAndCheck("GET", f"/repos/{old}/topics")
        self.assertEqual(topics["names"], [])
        self.create("py-other")
        with self.assertRaises(GithubException) as caught:
            repo.edit(name="py-other")
        self.assertEqual(self.field_errors(caught.exception, 409), [("name", "custom")])

    def test_one_is_archived_and_unarchived(self):
        repo = self.create("py-archived")
        repo.edit(archived=True)
        self.assertTrue(self.github.get_repo(repo.id).archived)
        with self.assertRaises(GithubException) as caught:
            repo.edit(description="too late")
        self.assertEqual(caught.exception.status, 403)
        repo.edit(archived=True)
        repo.edit(archived=False, description="writable")
        again = self.github.get_repo(repo.id)
        self.assertEqual((again.archived, again.description), (False, "writable"))

    def test_one_is_handed_over_and_found_by_its_old_name(self):
        repo = self.create("py-given", private=True)
        self.assertTrue(repo.transfer_ownership(SERVER["friend"]))
        friend = client(SERVER["friend_token"])
        with self.assertRaises(UnknownObjectException):
            friend.get_repo(repo.id)
        _, offers = friend.requester.requestJsonAndCheck("GET", "/user/repository_transfers")
        (offer,) = [one for one in offers if one["repository"]["id"] == repo.id]
        _, taken = friend.requester.requestJsonAndCheck("POST", f"/repository_transfers/{offer['id']}/accept")
        self.assertEqual(taken["status"], "accepted")
        given = friend.get_repo(f"{SERVER['owner']}/py-given")
        self.assertEqual((given.id, given.full_name), (repo.id, f"{SERVER['friend']}/py-given"))
        with self.assertRaises(UnknownObjectException):
            self.github.get_repo(f"{SERVER['owner']}/py-given")
        given.delete()

    def test_a_deleted_one_is_restored(self):
        repo = self.create("py-restored")
        repo.delete()
        _, deleted = self.github.requester.requestJsonAndCheck("GET", "/user/deleted_repos")
        self.assertIn(repo.id, [one["id"] for one in deleted])
        self.github.requester.requestJsonAndCheck("POST", f"/repositories/{repo.id}/restore", input={"name": "py-back"})
        self.assertEqual(self.github.get_repo(repo.id).name, "py-back")


class Collaborators(Scenario):
    def test_they_are_added_listed_changed_and_removed(self):
        repo = self.create("py-shared", private=True)
        friend = SERVER["friend"]
        self.assertFalse(repo.has_in_collaborators(friend))

        repo.add_to_collaborators(friend, permission="triage")
        self.assertTrue(repo.has_in_collaborators(friend))
        self.assertEqual(repo.get_collaborator_permission(friend), "read")
        self.assertEqual(repo.get_collaborator_role_name(friend), "triage")

        repo.add_to_collaborators(friend, permission="push")
        self.assertEqual(repo.get_collaborator_permission(friend), "write")
        listed = {person.login: person.permissions for person in repo.get_collaborators()}
        self.assertTrue(listed[friend].push)
        self.assertFalse(listed[friend].admin)

        repo.remove_from_collaborators(friend)
        self.assertFalse(repo.has_in_collaborators(friend))
        self.assertEqual(repo.get_collaborator_permission(friend), "none")

    def test_an_unknown_permission_is_named(self):
        repo = self.create("py-permission")
        with self.assertRaises(GithubException) as caught:
            repo.add_to_collaborators(SERVER["friend"], permission="everything")
        self.assertEqual(self.field_errors(caught.exception), [("permission", "invalid")])


class Keys(Scenario):
    def test_they_are_added_listed_and_removed(self):
        key = self.me.create_key("laptop", SERVER["key"])
        self.assertEqual(key.title, "laptop")
        self.assertEqual(key.key.split(" ")[:2], SERVER["key"].split(" ")[:2])
        self.assertEqual([entry.id for entry in self.me.get_keys()], [key.id])
        self.assertEqual(self.me.get_key(key.id).title, "laptop")
        with self.assertRaises(GithubException) as caught:
            self.me.create_key("again", SERVER["key"])
        self.assertEqual(self.field_errors(caught.exception), [("key", "already_exists")])

        key.delete()
        self.assertEqual(list(self.me.get_keys()), [])
        with self.assertRaises(UnknownObjectException):
            self.me.get_key(key.id)

    def test_what_is_no_key_is_named(self):
        with self.assertRaises(GithubException) as caught:
            self.me.create_key("nonsense", "ssh-ed25519 nonsense")
        self.assertEqual(self.field_errors(caught.exception), [("key", "invalid")])


class Notifications(Scenario):
    def setUp(self):
        super().setUp()
        self.inbox = client(SERVER["inbox_token"]).get_user()

    def told(self, count, source=None, **options):
        """What was told; it arrives a moment after it happened."""
        for _ in range(300):
            found = list((source or self.inbox).get_notifications(**options))
            if len(found) == count:
                return found
            time.sleep(0.1)
        self.fail(f"{len(found)} notifications instead of {count}")

    def test_they_are_read_one_by_one_and_all_at_once(self):
        repo = self.create("py-told")
        friend = client(SERVER["friend_token"]).get_repo(repo.id)
        self.inbox.mark_notifications_as_read(self.now())
        first = friend.create_issue("First", body="@" + SERVER["owner"])
        (told,) = self.told(1)
        self.assertEqual((told.subject.title, told.subject.type, told.reason), ("First", "Issue", "mention"))
        self.assertEqual(told.repository.full_name, repo.full_name)
        self.assertTrue(told.unread)
        self.assertIsNone(told.last_read_at)
        self.assertEqual(told.get_issue().number, first.number)
        self.assertEqual(self.inbox.get_notification(told.id).id, told.id)
        told.mark_as_read()
        self.told(0)
        (again,) = self.told(1, all=True, source=self.inbox_repo(repo))
        self.assertFalse(again.unread)
        self.assertIsNotNone(again.last_read_at.tzinfo)
        first.create_comment("@" + SERVER["owner"] + " again")
        (again,) = self.told(1, participating=True)
        self.inbox_repo(repo).mark_notifications_as_read(self.now())
        self.told(0)
        again.mark_as_done()
        self.told(0, all=True, source=self.inbox_repo(repo))
        first.create_comment("@" + SERVER["owner"] + " once more")
        self.told(1)
        self.inbox.mark_notifications_as_read(self.now())
        self.told(0)

    def now(self):
        """PyGithub's own default is the moment in which it was imported."""
        return datetime.now(timezone.utc)

    def inbox_repo(self, repo):
        return client(SERVER["inbox_token"]).get_repo(repo.id)


class Attention(Scenario):
    def test_a_repository_is_starred_and_its_stargazers_are_listed(self):
        repo = self.create("py-starred")
        self.assertFalse(self.me.has_in_starred(repo))
        self.me.add_to_starred(repo)
        self.assertTrue(self.me.has_in_starred(repo))
        self.assertIn("py-starred", [one.name for one in self.me.get_starred()])
        self.assertEqual([one.login for one in repo.get_stargazers()], [SERVER["owner"]])
        (star,) = repo.get_stargazers_with_dates()
        self.assertEqual(star.user.login, SERVER["owner"])
        self.assertIsNotNone(star.starred_at.tzinfo)
        self.assertEqual(self.github.get_repo(repo.id).stargazers_count, 1)
        self.me.remove_from_starred(repo)
        self.assertFalse(self.me.has_in_starred(repo))

    def test_a_repository_is_watched(self):
        repo = self.create("py-watched")
        self.assertTrue(self.me.has_in_watched(repo), "creating a repository watches it")
        self.me.remove_from_watched(repo)
        self.assertFalse(self.me.has_in_watched(repo))
        self.me.add_to_watched(repo)
        self.assertTrue(self.me.has_in_watched(repo))
        self.assertIn("py-watched", [one.name for one in self.me.get_watched()])
        self.assertEqual([one.login for one in repo.get_subscribers()], [SERVER["owner"]])
        self.assertEqual(self.github.get_repo(repo.id).subscribers_count, 1)
        self.me.remove_from_watched(repo)
        self.assertFalse(self.me.has_in_watched(repo))

    def test_what_happened_is_read(self):
        repo = self.create("py-eventful")
        repo.create_issue("Something happens")
        for _ in range(300):
            events = list(repo.get_events())
            if len(events) == 2:
                break
            time.sleep(0.1)
        self.assertEqual([event.type for event in events], ["IssuesEvent", "CreateEvent"])
        opened = events[0]
        self.assertEqual((opened.actor.login, opened.repo.name), (SERVER["owner"], repo.full_name))
        self.assertEqual(opened.payload["issue"]["title"], "Something happens")
        self.assertTrue(opened.public)
        self.assertIsNotNone(opened.created_at.tzinfo)
        me = self.github.get_user(SERVER["owner"])
        for source in [self.github.get_events(), me.get_events(), me.get_public_events(), me.get_received_events()]:
            self.assertIn(opened.id, [event.id for event in source[:60]])

    def test_a_friend_is_followed(self):
        friend = self.github.get_user(SERVER["friend"])
        self.assertFalse(self.me.has_in_following(friend))
        self.me.add_to_following(friend)
        self.assertTrue(self.me.has_in_following(friend))
        self.assertEqual([one.login for one in friend.get_followers()], [SERVER["owner"]])
        self.assertEqual(self.github.get_user(SERVER["friend"]).followers, 1)
        self.me.remove_from_following(friend)
        self.assertFalse(self.me.has_in_following(friend))


class Webhooks(Scenario):
    def setUp(self):
        super().setUp()
        self.hooks = client(SERVER["hooks_token"]).get_repo(f"{SERVER['owner']}/{SERVER['pushed']}")

    def test_a_hook_is_added_edited_pinged_and_removed(self):
        config = {"url": SERVER["receiver"], "content_type": "json", "secret": "hush"}
        hook = self.hooks.create_hook("web", config, events=["push", "star"], active=True)
        self.assertEqual((hook.name, hook.active, hook.events), ("web", True, ["push", "star"]))
        self.assertEqual(hook.config["secret"], "********")
        self.assertEqual([one.id for one in self.hooks.get_hooks()], [hook.id])
        self.assertEqual(self.hooks.get_hook(hook.id).config["url"], SERVER["receiver"])
        hook.edit("web", {"url": SERVER["receiver"], "content_type": "form"}, events=["issues"], add_events=["star"])
        self.assertEqual(self.hooks.get_hook(hook.id).events, ["star", "issues"])
        self.assertEqual(self.hooks.get_hook(hook.id).config["content_type"], "form")
        hook.ping()
        hook.test()
        for _ in range(600):
            deliveries = list(self.hooks.get_hook_deliveries(hook.id))
            if len(deliveries) == 2 and all(one.status_code == 200 for one in deliveries):
                break
            time.sleep(0.05)
        self.assertEqual([(one.event, one.status, one.redelivery) for one in deliveries], [("ping", "OK", False)] * 2)
        self.assertEqual(len({one.guid for one in deliveries}), 2)
        detail = self.hooks.get_hook_delivery(hook.id, deliveries[0].id)
        self.assertEqual(detail.request.payload["repository"]["full_name"], f"{SERVER['owner']}/{SERVER['pushed']}")
        self.assertEqual(detail.request.headers["X-GitHub-Event"], "ping")
        self.assertEqual(detail.response.payload, "said")
        self.assertEqual(self.hooks.get_hook(hook.id).last_response.code, 200)
        hook.delete()
        self.assertEqual(list(self.hooks.get_hooks()), [])

    def test_what_is_wrong_is_named(self):
        with self.assertRaises(GithubException) as caught:
            self.hooks.create_hook("web", {"url": "http://10.0.0.1/"})
        self.assertEqual(self.field_errors(caught.exception), [("url", "invalid")])
        with self.assertRaises(GithubException) as caught:
            self.hooks.create_hook("web", {"url": SERVER["receiver"]}, events=["deployment"])
        self.assertEqual(self.field_errors(caught.exception), [("events", "invalid")])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
