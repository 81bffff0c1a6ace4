//! The routes of issues, labels and milestones.

use crate::about::{About, about};
use crate::scoped::Access::{Logged, Open};
use crate::scoped::Routes;
use crate::shape::{FoundIssues, Issue, IssueComment, Label, Milestone, OwnIssue, SimpleUser, TimelineEvent};
use crate::{comments, issues, labels, milestones, search};
use abide_core::scope::Scope;

const STATE: (&str, &str) = ("state", "`open` (default), `closed` or `all`.");
const SINCE: (&str, &str) = ("since", "Only entries updated since this time, e.g. 2026-01-31T12:00:00Z.");

/// List issues of the authenticated user.
fn own(what: &'static str) -> About {
    about(what)
        .query(
            "filter",
            "`assigned` (the default), `created`, `mentioned`, `subscribed`, `repos` (owned or as a collaborator) or \
             `all`.",
        )
        .query(STATE.0, STATE.1)
        .query("labels", "Comma-separated label names; issues must have all of them.")
        .query("sort", "`created` (default), `updated` or `comments`.")
        .query("direction", "`desc` (default) or `asc`.")
        .query(SINCE.0, SINCE.1)
        .gives_page::<OwnIssue>()
}

pub(super) fn issues() -> Routes {
    let (read, write) = (Open(Scope::RepoRead), Logged(Scope::Repo));
    Routes::of("Issues")
        .get(
            "/search/issues",
            read,
            search::issues,
            about("Search issues")
                .query(
                    "q",
                    "Search words, and optionally `repo:`, `user:`, `is:`, `author:`, `assignee:`, `mentions:`, `label:`, `milestone:`, \
                     `no:`, `reason:`; `@me` is the caller.",
                )
                .query("sort", "`created` (default), `updated` or `comments`.")
                .query("order", "`desc` (default) or `asc`.")
                .paged()
                .gives::<FoundIssues>(),
        )
        .get("/issues", Logged(Scope::RepoRead), issues::mine, own("List issues of the authenticated user"))
        .get(
            "/user/issues",
            Logged(Scope::RepoRead),
            issues::mine_at_home,
            own("List issues of the authenticated user in repositories they own or collaborate on"),
        )
        .get(
            "/repos/{owner}/{repo}/issues",
            read,
            issues::list,
            about("List issues of a repository")
                .query(STATE.0, STATE.1)
                .query("labels", "Comma-separated label names; issues must have all of them.")
                .query("assignee", "Assignee; `*` for any, `none` for none.")
                .query("creator", "Author of the issues.")
                .query("milestone", "Milestone number; `*` for any, `none` for none.")
                .query("sort", "`created` (default), `updated` or `comments`.")
                .query("direction", "`desc` (default) or `asc`.")
                .query(SINCE.0, SINCE.1)
                .gives_page::<Issue>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues",
            write,
            issues::open,
            about("Open an issue").takes::<issues::Create>().gives_with::<Issue>(201, "The issue was opened."),
        )
        .get("/repos/{owner}/{repo}/issues/{number}", read, issues::show, about("Get an issue").gives::<Issue>())
        .patch(
            "/repos/{owner}/{repo}/issues/{number}",
            write,
            issues::edit,
            about("Update an issue: title, description, state, labels, assignees and milestone")
                .takes::<issues::Edit>()
                .gives::<Issue>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/comments",
            read,
            comments::of_issue,
            about("List comments of an issue, oldest first")
                .query(SINCE.0, SINCE.1)
                .gives_page::<IssueComment>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues/{number}/comments",
            write,
            comments::say,
            about("Comment on an issue").takes::<comments::Say>().gives_with::<IssueComment>(201, "The comment was created."),
        )
        .get(
            "/repos/{owner}/{repo}/issues/comments",
            read,
            comments::of_repo,
            about("List comments of all issues of a repository, oldest first")
                .query("sort", "`created` (default) or `updated`.")
                .query("direction", "`asc` (default) or `desc`.")
                .query(SINCE.0, SINCE.1)
                .gives_page::<IssueComment>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/comments/{id}",
            read,
            comments::show,
            about("Get a comment").gives::<IssueComment>(),
        )
        .patch(
            "/repos/{owner}/{repo}/issues/comments/{id}",
            write,
            comments::edit,
            about("Update a comment").takes::<comments::Say>().gives::<IssueComment>(),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/comments/{id}",
            write,
            comments::remove,
            about("Delete a comment").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/timeline",
            read,
            issues::timeline,
            about("List the timeline of an issue, oldest first").gives_page::<TimelineEvent>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/events",
            read,
            issues::events,
            about("List events of an issue, oldest first").gives_page::<TimelineEvent>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            read,
            issues::labels,
            about("List labels of an issue").gives_page::<Label>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            write,
            issues::add_labels,
            about("Add labels to an issue").takes::<issues::LabelNames>().gives_list::<Label>(),
        )
        .put(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            write,
            issues::set_labels,
            about("Replace all labels of an issue").takes::<issues::LabelNames>().gives_list::<Label>(),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            write,
            issues::clear_labels,
            about("Remove all labels from an issue").gives_nothing(),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/{number}/labels/{name}",
            write,
            issues::remove_label,
            about("Remove a label from an issue").gives_list::<Label>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues/{number}/assignees",
            write,
            issues::assign,
            about("Add assignees to an issue")
                .takes::<issues::AssigneeNames>()
                .gives_with::<Issue>(201, "The updated issue."),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/{number}/assignees",
            write,
            issues::unassign,
            about("Remove assignees from an issue").gives::<Issue>(),
        )
        .get(
            "/repos/{owner}/{repo}/assignees",
            read,
            issues::assignable,
            about("List possible assignees").gives_page::<SimpleUser>(),
        )
        .get(
            "/repos/{owner}/{repo}/assignees/{user}",
            read,
            issues::is_assignable,
            about("Check if a user can be assigned").gives_nothing(),
        )
}

pub(super) fn labels_and_milestones() -> Routes {
    let (read, write) = (Open(Scope::RepoRead), Logged(Scope::Repo));
    Routes::of("Labels and milestones")
        .get(
            "/repos/{owner}/{repo}/labels",
            read,
            labels::list,
            about("List labels of a repository").gives_page::<Label>(),
        )
        .post(
            "/repos/{owner}/{repo}/labels",
            write,
            labels::create,
            about("Create a label").takes::<labels::Create>().gives_with::<Label>(201, "The label was created."),
        )
        .get("/repos/{owner}/{repo}/labels/{name}", read, labels::show, about("Get a label").gives::<Label>())
        .patch(
            "/repos/{owner}/{repo}/labels/{name}",
            write,
            labels::edit,
            about("Update a label").takes::<labels::Edit>().gives::<Label>(),
        )
        .delete(
            "/repos/{owner}/{repo}/labels/{name}",
            write,
            labels::remove,
            about("Delete a label; it is removed from all issues").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/milestones",
            read,
            milestones::list,
            about("List milestones, earliest due date first").query(STATE.0, STATE.1).gives_page::<Milestone>(),
        )
        .post(
            "/repos/{owner}/{repo}/milestones",
            write,
            milestones::create,
            about("Create a milestone")
                .takes::<milestones::Plan>()
                .gives_with::<Milestone>(201, "The milestone was created."),
        )
        .get(
            "/repos/{owner}/{repo}/milestones/{number}",
            read,
            milestones::show,
            about("Get a milestone").gives::<Milestone>(),
        )
        .patch(
            "/repos/{owner}/{repo}/milestones/{number}",
            write,
            milestones::edit,
            about("Update a milestone").takes::<milestones::Plan>().gives::<Milestone>(),
        )
        .delete(
            "/repos/{owner}/{repo}/milestones/{number}",
            write,
            milestones::remove,
            about("Delete a milestone; its issues stay").gives_nothing(),
        )
}
