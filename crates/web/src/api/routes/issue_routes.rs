//! The routes of issues, labels and milestones.

use crate::api::about::{About, about};
use crate::api::scoped::Access::{Logged, Open};
use crate::api::scoped::Routes;
use crate::api::shape::{FoundIssues, Issue, IssueComment, Label, Milestone, OwnIssue, SimpleUser, TimelineEvent};
use crate::api::{comments, issues, labels, milestones, search};
use abide_core::scope::Scope;

const STATE: (&str, &str) = ("state", "`open` (the default), `closed` or `all`.");
const SINCE: (&str, &str) = ("since", "Only what changed since then, e.g. 2026-01-31T12:00:00Z.");

/// The issues that concern the caller.
fn own(what: &'static str) -> About {
    about(what)
        .query(
            "filter",
            "`assigned` (the default), `created`, `mentioned`, `subscribed`, `repos` (what they own or collaborate on) or \
             `all` of it.",
        )
        .query(STATE.0, STATE.1)
        .query("labels", "Names of labels between commas, all of which an issue has.")
        .query("sort", "`created` (the default), `updated` or `comments`.")
        .query("direction", "`desc` (the default) or `asc`.")
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
                    "Words, and perhaps `repo:`, `user:`, `is:`, `author:`, `assignee:`, `mentions:`, `label:`, `milestone:`, \
                     `no:`, `reason:`; `@me` is the caller.",
                )
                .query("sort", "`created` (the default), `updated` or `comments`.")
                .query("order", "`desc` (the default) or `asc`.")
                .paged()
                .gives::<FoundIssues>(),
        )
        .get("/issues", Logged(Scope::RepoRead), issues::mine, own("The issues that concern the caller"))
        .get(
            "/user/issues",
            Logged(Scope::RepoRead),
            issues::mine_at_home,
            own("The same in repositories that the caller owns or collaborates on"),
        )
        .get(
            "/repos/{owner}/{repo}/issues",
            read,
            issues::list,
            about("A repository's issues")
                .query(STATE.0, STATE.1)
                .query("labels", "Names of labels between commas, all of which an issue has.")
                .query("assignee", "Who is responsible; `*` for anybody, `none` for nobody.")
                .query("creator", "Who opened them.")
                .query("milestone", "The number of a milestone; `*` for any, `none` for none.")
                .query("sort", "`created` (the default), `updated` or `comments`.")
                .query("direction", "`desc` (the default) or `asc`.")
                .query(SINCE.0, SINCE.1)
                .gives_page::<Issue>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues",
            write,
            issues::open,
            about("Open an issue").takes::<issues::Create>().gives_with::<Issue>(201, "The issue was opened."),
        )
        .get("/repos/{owner}/{repo}/issues/{number}", read, issues::show, about("An issue").gives::<Issue>())
        .patch(
            "/repos/{owner}/{repo}/issues/{number}",
            write,
            issues::edit,
            about("Change an issue: what it says, whether it is open, its labels, assignees and milestone")
                .takes::<issues::Edit>()
                .gives::<Issue>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/comments",
            read,
            comments::of_issue,
            about("The comments on an issue, the oldest first")
                .query(SINCE.0, SINCE.1)
                .gives_page::<IssueComment>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues/{number}/comments",
            write,
            comments::say,
            about("Comment on an issue").takes::<comments::Say>().gives_with::<IssueComment>(201, "It was said."),
        )
        .get(
            "/repos/{owner}/{repo}/issues/comments",
            read,
            comments::of_repo,
            about("The comments on all issues of a repository, the oldest first")
                .query("sort", "`created` (the default) or `updated`.")
                .query("direction", "`asc` (the default) or `desc`.")
                .query(SINCE.0, SINCE.1)
                .gives_page::<IssueComment>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/comments/{id}",
            read,
            comments::show,
            about("A comment").gives::<IssueComment>(),
        )
        .patch(
            "/repos/{owner}/{repo}/issues/comments/{id}",
            write,
            comments::edit,
            about("Change a comment").takes::<comments::Say>().gives::<IssueComment>(),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/comments/{id}",
            write,
            comments::remove,
            about("Remove a comment").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/timeline",
            read,
            issues::timeline,
            about("What happened to an issue, the oldest first").gives_page::<TimelineEvent>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/events",
            read,
            issues::events,
            about("The changes of an issue, the oldest first").gives_page::<TimelineEvent>(),
        )
        .get(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            read,
            issues::labels,
            about("The labels of an issue").gives_page::<Label>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            write,
            issues::add_labels,
            about("Give an issue labels").takes::<issues::LabelNames>().gives_list::<Label>(),
        )
        .put(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            write,
            issues::set_labels,
            about("Replace the labels of an issue").takes::<issues::LabelNames>().gives_list::<Label>(),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/{number}/labels",
            write,
            issues::clear_labels,
            about("Take every label off an issue").gives_nothing(),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/{number}/labels/{name}",
            write,
            issues::remove_label,
            about("Take a label off an issue").gives_list::<Label>(),
        )
        .post(
            "/repos/{owner}/{repo}/issues/{number}/assignees",
            write,
            issues::assign,
            about("Make people responsible for an issue")
                .takes::<issues::AssigneeNames>()
                .gives_with::<Issue>(201, "As it is now."),
        )
        .delete(
            "/repos/{owner}/{repo}/issues/{number}/assignees",
            write,
            issues::unassign,
            about("Make people no longer responsible for an issue").gives::<Issue>(),
        )
        .get(
            "/repos/{owner}/{repo}/assignees",
            read,
            issues::assignable,
            about("Who can be made responsible").gives_page::<SimpleUser>(),
        )
        .get(
            "/repos/{owner}/{repo}/assignees/{user}",
            read,
            issues::is_assignable,
            about("Whether someone can be made responsible").gives_nothing(),
        )
}

pub(super) fn labels_and_milestones() -> Routes {
    let (read, write) = (Open(Scope::RepoRead), Logged(Scope::Repo));
    Routes::of("Labels and milestones")
        .get("/repos/{owner}/{repo}/labels", read, labels::list, about("A repository's labels").gives_page::<Label>())
        .post(
            "/repos/{owner}/{repo}/labels",
            write,
            labels::create,
            about("Make a label").takes::<labels::Create>().gives_with::<Label>(201, "The label was made."),
        )
        .get("/repos/{owner}/{repo}/labels/{name}", read, labels::show, about("A label").gives::<Label>())
        .patch(
            "/repos/{owner}/{repo}/labels/{name}",
            write,
            labels::edit,
            about("Change a label").takes::<labels::Edit>().gives::<Label>(),
        )
        .delete(
            "/repos/{owner}/{repo}/labels/{name}",
            write,
            labels::remove,
            about("Remove a label, from every issue too").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/milestones",
            read,
            milestones::list,
            about("A repository's milestones, the soonest first").query(STATE.0, STATE.1).gives_page::<Milestone>(),
        )
        .post(
            "/repos/{owner}/{repo}/milestones",
            write,
            milestones::create,
            about("Make a milestone")
                .takes::<milestones::Plan>()
                .gives_with::<Milestone>(201, "The milestone was made."),
        )
        .get(
            "/repos/{owner}/{repo}/milestones/{number}",
            read,
            milestones::show,
            about("A milestone").gives::<Milestone>(),
        )
        .patch(
            "/repos/{owner}/{repo}/milestones/{number}",
            write,
            milestones::edit,
            about("Change a milestone").takes::<milestones::Plan>().gives::<Milestone>(),
        )
        .delete(
            "/repos/{owner}/{repo}/milestones/{number}",
            write,
            milestones::remove,
            about("Remove a milestone; its issues stay").gives_nothing(),
        )
}
