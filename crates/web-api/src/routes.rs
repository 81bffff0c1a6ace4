//! All routes of the API with access, handler and description.

use super::about::about;
use super::scoped::Access::{Everyone, Logged, Open, Uncounted};
use super::scoped::Routes;
use super::shape::{
    AuditEntry, Branch, Collaborator, CommitItem, Comparison, Content, DeletedRepository, Email, Found, FullCommit,
    GitBlob, GitCommit, GitRef, GitTag, GitTree, Key, OwnUser, Permission, Redirect, Repository, ShortBranch,
    SimpleUser, Subscription, Tag, TopicNames, Transfer, User,
};
use super::{
    audit, collaborators, commits, contents, deleted, follows, forks, grasp, keys, meta, objects, openapi, redirects,
    refs, repos, search, stars, topics, transfers, user, watches,
};
use abide_core::scope::Scope;

mod admin_routes;
mod event_routes;
mod hook_routes;
mod issue_routes;
mod notification_routes;

const REF: (&str, &str) = ("ref", "Branch, tag or commit. Default: the default branch.");
const CREATED: &str = "Created. `X-Abide-Notice` is set if the name redirected to another repository, or was converted to \
    lowercase.";
const CHANGED: &str = "The changed repository. `X-Abide-Notice` is set if the new name redirected to another repository, or \
    was converted to lowercase.";
/// Media type of raw file content.
const RAW: &[&str] = &["application/octet-stream"];
/// Media type of stars with their times.
const STARS: &[&str] = &["application/vnd.github.star+json"];
const DIFFS: &[&str] = &["application/vnd.github.diff", "application/vnd.github.patch"];

pub(super) fn routes() -> Routes {
    about_the_server()
        .and(people())
        .and(repositories())
        .and(life())
        .and(sharing())
        .and(attention())
        .and(following())
        .and(event_routes::events())
        .and(issue_routes::issues())
        .and(issue_routes::labels_and_milestones())
        .and(hook_routes::webhooks())
        .and(notification_routes::notifications())
        .and(content())
        .and(history())
        .and(git_objects())
        .and(admin_routes::administration())
}

fn about_the_server() -> Routes {
    Routes::of("This server")
        .get("", Everyone, meta::root, about("API root").gives_json())
        .get("/", Everyone, meta::root, about("API root, with a trailing slash").gives_json())
        .get("/meta", Everyone, meta::meta, about("Information about this server").gives_json())
        .get("/openapi.json", Everyone, openapi::show, about("This OpenAPI document").gives_json())
        .get("/rate_limit", Uncounted, meta::rate_limit, about("Rate limit status").gives::<meta::Rates>())
        .get(
            "/search/repositories",
            Open(Scope::RepoRead),
            search::repositories,
            about("Search repositories")
                .query("q", "Search words, and optionally `topic:` and `user:`.")
                .query("sort", "`stars`, `updated` or `name`. Default: best match.")
                .paged()
                .gives::<Found>(),
        )
        .get(
            "/grasp/{npub}/{identifier}/status",
            Everyone,
            grasp::status,
            about("Get the status of a repository announced over nostr").gives::<grasp::GraspStatus>(),
        )
}

fn people() -> Routes {
    Routes::of("People")
        .get("/user", Logged(Scope::UserRead), user::me, about("Get the authenticated user").gives::<OwnUser>())
        .patch(
            "/user",
            Logged(Scope::User),
            user::edit,
            about("Update the authenticated user").takes::<user::Edit>().gives::<OwnUser>(),
        )
        .get(
            "/user/emails",
            Logged(Scope::UserRead),
            user::emails,
            about("List e-mail addresses of the authenticated user").gives_page::<Email>(),
        )
        .get("/users/{user}", Open(Scope::UserRead), user::show, about("Get a user").gives::<User>())
        .get(
            "/user/keys",
            Logged(Scope::KeysRead),
            keys::list,
            about("List SSH keys of the authenticated user").gives_page::<Key>(),
        )
        .post(
            "/user/keys",
            Logged(Scope::Keys),
            keys::add,
            about("Add an SSH key").takes::<keys::Add>().gives_with::<Key>(201, "The key was added."),
        )
        .get("/user/keys/{id}", Logged(Scope::KeysRead), keys::show, about("Get an SSH key").gives::<Key>())
        .delete("/user/keys/{id}", Logged(Scope::Keys), keys::remove, about("Delete an SSH key").gives_nothing())
}

fn repositories() -> Routes {
    Routes::of("Repositories")
        .get(
            "/user/repos",
            Logged(Scope::RepoRead),
            repos::mine,
            about("List repositories of the authenticated user, owned or as a collaborator").gives_page::<Repository>(),
        )
        .post(
            "/user/repos",
            Logged(Scope::Repo),
            repos::create,
            about("Create a repository").takes::<repos::Create>().gives_with::<Repository>(201, CREATED),
        )
        .get(
            "/users/{user}/repos",
            Open(Scope::RepoRead),
            repos::of_user,
            about("List repositories of a user").gives_page::<Repository>(),
        )
        .get(
            "/repos/{owner}/{repo}",
            Open(Scope::RepoRead),
            repos::show,
            about("Get a repository").gives::<Repository>().moves(),
        )
        .patch(
            "/repos/{owner}/{repo}",
            Logged(Scope::Repo),
            repos::edit,
            about("Update a repository: rename, archive, change visibility")
                .takes::<repos::Edit>()
                .gives_with::<Repository>(200, CHANGED),
        )
        .delete(
            "/repos/{owner}/{repo}",
            Logged(Scope::Repo),
            repos::delete,
            about("Delete a repository; its owner can restore it during the grace period").gives_nothing(),
        )
        .get(
            "/repositories/{id}",
            Open(Scope::RepoRead),
            repos::show_by_id,
            about("Get a repository by id").gives::<Repository>(),
        )
        .get(
            "/repos/{owner}/{repo}/forks",
            Open(Scope::RepoRead),
            forks::list,
            about("List forks, newest first").gives_page::<Repository>(),
        )
        .post(
            "/repos/{owner}/{repo}/forks",
            Logged(Scope::Repo),
            forks::create,
            about("Fork a repository").takes::<forks::Create>().gives_with::<Repository>(202, "The new fork."),
        )
        .get(
            "/repos/{owner}/{repo}/topics",
            Open(Scope::RepoRead),
            topics::show,
            about("List topics").gives::<TopicNames>(),
        )
        .put(
            "/repos/{owner}/{repo}/topics",
            Logged(Scope::Repo),
            topics::replace,
            about("Replace all topics").takes::<TopicNames>().gives::<TopicNames>(),
        )
}

fn life() -> Routes {
    let answer = |summary| about(summary).takes_nothing().gives::<Transfer>();
    Routes::of("Lifecycle")
        .post(
            "/repos/{owner}/{repo}/transfer",
            Logged(Scope::Repo),
            transfers::offer,
            about("Transfer a repository")
                .takes::<transfers::Offer>()
                .gives_with::<Transfer>(202, "The transfer offer, pending until the new owner answers."),
        )
        .get(
            "/user/repository_transfers",
            Logged(Scope::RepoRead),
            transfers::inbox,
            about("List open transfer offers to and from the authenticated user, newest first")
                .gives_page::<Transfer>(),
        )
        .get(
            "/repository_transfers/{id}",
            Logged(Scope::RepoRead),
            transfers::show,
            about("Get a transfer offer; for both parties and repository administrators").gives::<Transfer>(),
        )
        .post(
            "/repository_transfers/{id}/accept",
            Logged(Scope::Repo),
            transfers::accept,
            answer("Accept a transfer offer"),
        )
        .post(
            "/repository_transfers/{id}/decline",
            Logged(Scope::Repo),
            transfers::decline,
            answer("Decline a transfer offer"),
        )
        .post(
            "/repository_transfers/{id}/cancel",
            Logged(Scope::Repo),
            transfers::cancel,
            answer("Cancel a transfer offer"),
        )
        .get(
            "/user/deleted_repos",
            Logged(Scope::RepoRead),
            deleted::list,
            about("List deleted repositories of the authenticated user, newest first")
                .gives_page::<DeletedRepository>(),
        )
        .post(
            "/repositories/{id}/restore",
            Logged(Scope::Repo),
            deleted::restore,
            about("Restore a deleted repository, optionally under another name")
                .takes_perhaps::<deleted::Restore>()
                .gives::<Repository>(),
        )
        .get(
            "/repos/{owner}/{repo}/redirects",
            Logged(Scope::RepoRead),
            redirects::list,
            about("List old names of a repository, newest first").gives_page::<Redirect>(),
        )
        .delete(
            "/repos/{owner}/{repo}/redirects/{id}",
            Logged(Scope::Repo),
            redirects::release,
            about("Release an old name; it no longer redirects").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/audit",
            Logged(Scope::RepoRead),
            audit::list,
            about("List the audit log of a repository, newest first").gives_log::<AuditEntry>(),
        )
}

fn sharing() -> Routes {
    Routes::of("Collaborators")
        .get(
            "/repos/{owner}/{repo}/collaborators",
            Logged(Scope::RepoRead),
            collaborators::list,
            about("List collaborators").gives_page::<Collaborator>(),
        )
        .get(
            "/repos/{owner}/{repo}/collaborators/{user}",
            Logged(Scope::RepoRead),
            collaborators::check,
            about("Check if a user is a collaborator").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/collaborators/{user}/permission",
            Logged(Scope::RepoRead),
            collaborators::permission,
            about("Get the role of a user").gives::<Permission>(),
        )
        .put(
            "/repos/{owner}/{repo}/collaborators/{user}",
            Logged(Scope::Repo),
            collaborators::set,
            about("Add a collaborator or change their role").takes::<collaborators::Set>().gives_nothing(),
        )
        .delete(
            "/repos/{owner}/{repo}/collaborators/{user}",
            Logged(Scope::Repo),
            collaborators::remove,
            about("Remove a collaborator").gives_nothing(),
        )
}

fn attention() -> Routes {
    let starred = |summary| {
        about(summary)
            .query("sort", "`created` (when starred) or `updated`.")
            .query("direction", "`desc` or `asc`.")
            .gives_page::<Repository>()
            .or_media(STARS)
    };
    Routes::of("Stars and watching")
        .get(
            "/user/starred",
            Logged(Scope::RepoRead),
            stars::mine,
            starred("List repositories starred by the authenticated user, newest first"),
        )
        .get(
            "/users/{user}/starred",
            Open(Scope::RepoRead),
            stars::of_user,
            starred("List repositories starred by a user that the caller can read, newest first"),
        )
        .get(
            "/user/starred/{owner}/{repo}",
            Logged(Scope::RepoRead),
            stars::check,
            about("Check if the authenticated user has starred a repository").gives_nothing(),
        )
        .put(
            "/user/starred/{owner}/{repo}",
            Logged(Scope::Repo),
            stars::star,
            about("Star a repository").takes_nothing().gives_nothing(),
        )
        .delete(
            "/user/starred/{owner}/{repo}",
            Logged(Scope::Repo),
            stars::unstar,
            about("Unstar a repository").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/stargazers",
            Open(Scope::RepoRead),
            stars::stargazers,
            about("List stargazers, newest first").gives_page::<SimpleUser>().or_media(STARS),
        )
        .get(
            "/repos/{owner}/{repo}/subscription",
            Logged(Scope::RepoRead),
            watches::show,
            about("Get the watch level of the authenticated user").gives::<Subscription>(),
        )
        .put(
            "/repos/{owner}/{repo}/subscription",
            Logged(Scope::Repo),
            watches::set,
            about("Set the watch level").takes_perhaps::<watches::Set>().gives::<Subscription>(),
        )
        .delete(
            "/repos/{owner}/{repo}/subscription",
            Logged(Scope::Repo),
            watches::clear,
            about("Delete the watch level").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/subscribers",
            Logged(Scope::RepoRead),
            watches::subscribers,
            about("List watchers, newest first; for repository administrators").gives_page::<SimpleUser>(),
        )
        .get(
            "/user/subscriptions",
            Logged(Scope::RepoRead),
            watches::mine,
            about("List repositories watched by the authenticated user, newest first").gives_page::<Repository>(),
        )
}

fn following() -> Routes {
    let people = |summary| about(summary).gives_page::<SimpleUser>();
    Routes::of("Following")
        .get(
            "/user/followers",
            Logged(Scope::UserRead),
            follows::my_followers,
            people("List followers of the authenticated user, newest first"),
        )
        .get(
            "/user/following",
            Logged(Scope::UserRead),
            follows::my_following,
            people("List people the authenticated user follows, newest first"),
        )
        .get(
            "/users/{user}/followers",
            Open(Scope::UserRead),
            follows::followers,
            people("List followers of a user, newest first"),
        )
        .get(
            "/users/{user}/following",
            Open(Scope::UserRead),
            follows::following,
            people("List people a user follows, newest first"),
        )
        .get(
            "/users/{user}/following/{target}",
            Open(Scope::UserRead),
            follows::check_other,
            about("Check if a user follows another user").gives_nothing(),
        )
        .get(
            "/user/following/{user}",
            Logged(Scope::UserRead),
            follows::check,
            about("Check if the authenticated user follows a user").gives_nothing(),
        )
        .put(
            "/user/following/{user}",
            Logged(Scope::User),
            follows::follow,
            about("Follow a user").takes_nothing().gives_nothing(),
        )
        .delete(
            "/user/following/{user}",
            Logged(Scope::User),
            follows::unfollow,
            about("Unfollow a user").gives_nothing(),
        )
}

fn content() -> Routes {
    let content = |summary| about(summary).query(REF.0, REF.1).gives_one_or_many::<Content>().or_media(RAW);
    let readme = |summary| about(summary).query(REF.0, REF.1).gives::<Content>().or_media(RAW);
    let read = Open(Scope::RepoRead);
    Routes::of("Contents")
        .get("/repos/{owner}/{repo}/contents", read, contents::show, content("Get the root directory"))
        .get(
            "/repos/{owner}/{repo}/contents/",
            read,
            contents::show,
            content("Get the root directory, with a trailing slash"),
        )
        .get("/repos/{owner}/{repo}/contents/{*path}", read, contents::show, content("Get a file or directory"))
        .get("/repos/{owner}/{repo}/readme", read, contents::readme, readme("Get the README"))
        .get("/repos/{owner}/{repo}/readme/{*dir}", read, contents::readme, readme("Get the README of a directory"))
}

fn history() -> Routes {
    let read = Open(Scope::RepoRead);
    Routes::of("History")
        .get("/repos/{owner}/{repo}/branches", read, refs::branches, about("Branches").gives_page::<ShortBranch>())
        .get("/repos/{owner}/{repo}/branches/{*branch}", read, refs::branch, about("Get a branch").gives::<Branch>())
        .get(
            "/repos/{owner}/{repo}/tags",
            read,
            refs::tags,
            about("List tags, highest version first").gives_page::<Tag>(),
        )
        .get(
            "/repos/{owner}/{repo}/commits",
            read,
            commits::list,
            about("List commits, newest first")
                .query("sha", "Branch, tag or commit to start from.")
                .query("path", "Only commits that changed this file or directory.")
                .query("author", "Only commits whose author name or e-mail contains this.")
                .query("since", "Only commits since this time.")
                .query("until", "Only commits until this time.")
                .gives_page::<CommitItem>(),
        )
        .get(
            "/repos/{owner}/{repo}/commits/{*ref}",
            read,
            commits::show,
            about("Get a commit with its changes")
                .gives::<FullCommit>()
                .or_media(DIFFS)
                .or_media(&["application/vnd.github.sha"]),
        )
        .get(
            "/repos/{owner}/{repo}/compare/{*basehead}",
            read,
            commits::compare,
            about("Compare two commits, written base...head").gives::<Comparison>().or_media(DIFFS),
        )
}

fn git_objects() -> Routes {
    let read = Open(Scope::RepoRead);
    Routes::of("Git objects")
        .get("/repos/{owner}/{repo}/git/refs", read, refs::refs, about("List all refs").gives_page::<GitRef>())
        .get(
            "/repos/{owner}/{repo}/git/refs/{*ref}",
            read,
            refs::one,
            about("Get a ref (legacy path)").gives::<GitRef>(),
        )
        .get("/repos/{owner}/{repo}/git/ref/{*ref}", read, refs::one, about("Get a ref").gives::<GitRef>())
        .get(
            "/repos/{owner}/{repo}/git/matching-refs/{*ref}",
            read,
            refs::matching,
            about("List refs with a prefix").gives_page::<GitRef>(),
        )
        .get(
            "/repos/{owner}/{repo}/git/trees/{*sha}",
            read,
            objects::tree,
            about("Get a tree").query("recursive", "Any value: list subdirectories recursively.").gives::<GitTree>(),
        )
        .get(
            "/repos/{owner}/{repo}/git/commits/{sha}",
            read,
            objects::commit,
            about("Get a commit without its changes").gives::<GitCommit>(),
        )
        .get(
            "/repos/{owner}/{repo}/git/blobs/{sha}",
            read,
            objects::blob,
            about("Get a blob").gives::<GitBlob>().or_media(RAW),
        )
        .get(
            "/repos/{owner}/{repo}/git/tags/{sha}",
            read,
            objects::tag,
            about("Get an annotated tag").gives::<GitTag>(),
        )
}
