//! Every route of the API: who may call it, what serves it, and what it says about itself.

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

const REF: (&str, &str) = ("ref", "A branch, tag or commit; the default branch if not given.");
const CREATED: &str = "It was created. `X-Abide-Notice` says so if the name led to another one until now, or was typed in \
    another case than it has.";
const CHANGED: &str = "As it is now. `X-Abide-Notice` says so if the new name led to another one until now, or was typed \
    in another case than it has.";
/// Asked for as `application/vnd.github.raw`.
const RAW: &[&str] = &["application/octet-stream"];
/// With the time of each star.
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
        .get("", Everyone, meta::root, about("Where the API's parts are").gives_json())
        .get("/", Everyone, meta::root, about("Where the API's parts are, with a slash").gives_json())
        .get("/meta", Everyone, meta::meta, about("What this server is").gives_json())
        .get("/openapi.json", Everyone, openapi::show, about("This document").gives_json())
        .get("/rate_limit", Uncounted, meta::rate_limit, about("How many requests are left").gives::<meta::Rates>())
        .get(
            "/search/repositories",
            Open(Scope::RepoRead),
            search::repositories,
            about("Search repositories")
                .query("q", "Words, and perhaps `topic:` and `user:`.")
                .query("sort", "`stars`, `updated` or `name`; by default the best match comes first.")
                .paged()
                .gives::<Found>(),
        )
        .get(
            "/grasp/{npub}/{identifier}/status",
            Everyone,
            grasp::status,
            about("Whether a repository that a nostr key announced is served, or what it waits for")
                .gives::<grasp::GraspStatus>(),
        )
}

fn people() -> Routes {
    Routes::of("People")
        .get("/user", Logged(Scope::UserRead), user::me, about("The caller's account").gives::<OwnUser>())
        .patch(
            "/user",
            Logged(Scope::User),
            user::edit,
            about("Change the caller's profile").takes::<user::Edit>().gives::<OwnUser>(),
        )
        .get(
            "/user/emails",
            Logged(Scope::UserRead),
            user::emails,
            about("The caller's addresses").gives_page::<Email>(),
        )
        .get("/users/{user}", Open(Scope::UserRead), user::show, about("An account").gives::<User>())
        .get("/user/keys", Logged(Scope::KeysRead), keys::list, about("The caller's SSH keys").gives_page::<Key>())
        .post(
            "/user/keys",
            Logged(Scope::Keys),
            keys::add,
            about("Add an SSH key").takes::<keys::Add>().gives_with::<Key>(201, "The key was added."),
        )
        .get("/user/keys/{id}", Logged(Scope::KeysRead), keys::show, about("One of the caller's keys").gives::<Key>())
        .delete("/user/keys/{id}", Logged(Scope::Keys), keys::remove, about("Remove an SSH key").gives_nothing())
}

fn repositories() -> Routes {
    Routes::of("Repositories")
        .get(
            "/user/repos",
            Logged(Scope::RepoRead),
            repos::mine,
            about("What the caller owns or collaborates on").gives_page::<Repository>(),
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
            about("An account's repositories").gives_page::<Repository>(),
        )
        .get(
            "/repos/{owner}/{repo}",
            Open(Scope::RepoRead),
            repos::show,
            about("A repository").gives::<Repository>().moves(),
        )
        .patch(
            "/repos/{owner}/{repo}",
            Logged(Scope::Repo),
            repos::edit,
            about("Change a repository: rename it, archive it, change who may read it")
                .takes::<repos::Edit>()
                .gives_with::<Repository>(200, CHANGED),
        )
        .delete(
            "/repos/{owner}/{repo}",
            Logged(Scope::Repo),
            repos::delete,
            about("Delete a repository; its owner can restore it for some time").gives_nothing(),
        )
        .get(
            "/repositories/{id}",
            Open(Scope::RepoRead),
            repos::show_by_id,
            about("A repository by its id").gives::<Repository>(),
        )
        .get(
            "/repos/{owner}/{repo}/forks",
            Open(Scope::RepoRead),
            forks::list,
            about("A repository's forks, the latest first").gives_page::<Repository>(),
        )
        .post(
            "/repos/{owner}/{repo}/forks",
            Logged(Scope::Repo),
            forks::create,
            about("Fork a repository").takes::<forks::Create>().gives_with::<Repository>(202, "The caller's fork."),
        )
        .get(
            "/repos/{owner}/{repo}/topics",
            Open(Scope::RepoRead),
            topics::show,
            about("A repository's topics").gives::<TopicNames>(),
        )
        .put(
            "/repos/{owner}/{repo}/topics",
            Logged(Scope::Repo),
            topics::replace,
            about("Replace a repository's topics").takes::<TopicNames>().gives::<TopicNames>(),
        )
}

fn life() -> Routes {
    let answer = |summary| about(summary).takes_nothing().gives::<Transfer>();
    Routes::of("Lifecycle")
        .post(
            "/repos/{owner}/{repo}/transfer",
            Logged(Scope::Repo),
            transfers::offer,
            about("Offer a repository to someone")
                .takes::<transfers::Offer>()
                .gives_with::<Transfer>(202, "The offer, which waits for the recipient's answer."),
        )
        .get(
            "/user/repository_transfers",
            Logged(Scope::RepoRead),
            transfers::inbox,
            about("Open offers to the caller and of what the caller owns, the latest first").gives_page::<Transfer>(),
        )
        .get(
            "/repository_transfers/{id}",
            Logged(Scope::RepoRead),
            transfers::show,
            about("An offer, for its two sides and those who administer the repository").gives::<Transfer>(),
        )
        .post(
            "/repository_transfers/{id}/accept",
            Logged(Scope::Repo),
            transfers::accept,
            answer("Take an offered repository"),
        )
        .post(
            "/repository_transfers/{id}/decline",
            Logged(Scope::Repo),
            transfers::decline,
            answer("Decline an offered repository"),
        )
        .post("/repository_transfers/{id}/cancel", Logged(Scope::Repo), transfers::cancel, answer("Take an offer back"))
        .get(
            "/user/deleted_repos",
            Logged(Scope::RepoRead),
            deleted::list,
            about("The caller's deleted repositories, the latest first").gives_page::<DeletedRepository>(),
        )
        .post(
            "/repositories/{id}/restore",
            Logged(Scope::Repo),
            deleted::restore,
            about("Restore a deleted repository, perhaps under another name")
                .takes_perhaps::<deleted::Restore>()
                .gives::<Repository>(),
        )
        .get(
            "/repos/{owner}/{repo}/redirects",
            Logged(Scope::RepoRead),
            redirects::list,
            about("A repository's old names, the latest first").gives_page::<Redirect>(),
        )
        .delete(
            "/repos/{owner}/{repo}/redirects/{id}",
            Logged(Scope::Repo),
            redirects::release,
            about("Release an old name: it leads nowhere any more").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/audit",
            Logged(Scope::RepoRead),
            audit::list,
            about("What was done to a repository, the latest first").gives_log::<AuditEntry>(),
        )
}

fn sharing() -> Routes {
    Routes::of("Collaborators")
        .get(
            "/repos/{owner}/{repo}/collaborators",
            Logged(Scope::RepoRead),
            collaborators::list,
            about("Who works on a repository").gives_page::<Collaborator>(),
        )
        .get(
            "/repos/{owner}/{repo}/collaborators/{user}",
            Logged(Scope::RepoRead),
            collaborators::check,
            about("Whether someone works on a repository").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/collaborators/{user}/permission",
            Logged(Scope::RepoRead),
            collaborators::permission,
            about("What role someone has").gives::<Permission>(),
        )
        .put(
            "/repos/{owner}/{repo}/collaborators/{user}",
            Logged(Scope::Repo),
            collaborators::set,
            about("Give someone a role").takes::<collaborators::Set>().gives_nothing(),
        )
        .delete(
            "/repos/{owner}/{repo}/collaborators/{user}",
            Logged(Scope::Repo),
            collaborators::remove,
            about("Take someone's role away").gives_nothing(),
        )
}

fn attention() -> Routes {
    let starred = |summary| {
        about(summary)
            .query("sort", "`created` (when it was starred) or `updated`.")
            .query("direction", "`desc` or `asc`.")
            .gives_page::<Repository>()
            .or_media(STARS)
    };
    Routes::of("Stars and watching")
        .get("/user/starred", Logged(Scope::RepoRead), stars::mine, starred("What the caller stars, the latest first"))
        .get(
            "/users/{user}/starred",
            Open(Scope::RepoRead),
            stars::of_user,
            starred("What someone stars, the latest first, as far as the caller may read it"),
        )
        .get(
            "/user/starred/{owner}/{repo}",
            Logged(Scope::RepoRead),
            stars::check,
            about("Whether the caller stars a repository").gives_nothing(),
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
            about("Take a star back").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/stargazers",
            Open(Scope::RepoRead),
            stars::stargazers,
            about("Who stars a repository, the latest first").gives_page::<SimpleUser>().or_media(STARS),
        )
        .get(
            "/repos/{owner}/{repo}/subscription",
            Logged(Scope::RepoRead),
            watches::show,
            about("What the caller chose to be told about a repository").gives::<Subscription>(),
        )
        .put(
            "/repos/{owner}/{repo}/subscription",
            Logged(Scope::Repo),
            watches::set,
            about("Choose what to be told about a repository").takes_perhaps::<watches::Set>().gives::<Subscription>(),
        )
        .delete(
            "/repos/{owner}/{repo}/subscription",
            Logged(Scope::Repo),
            watches::clear,
            about("Take that choice back").gives_nothing(),
        )
        .get(
            "/repos/{owner}/{repo}/subscribers",
            Logged(Scope::RepoRead),
            watches::subscribers,
            about("Who watches a repository, the latest first, for those who administer it").gives_page::<SimpleUser>(),
        )
        .get(
            "/user/subscriptions",
            Logged(Scope::RepoRead),
            watches::mine,
            about("What the caller watches, the latest first").gives_page::<Repository>(),
        )
}

fn following() -> Routes {
    let people = |summary| about(summary).gives_page::<SimpleUser>();
    Routes::of("Following")
        .get(
            "/user/followers",
            Logged(Scope::UserRead),
            follows::my_followers,
            people("Who follows the caller, the latest first"),
        )
        .get(
            "/user/following",
            Logged(Scope::UserRead),
            follows::my_following,
            people("Whom the caller follows, the latest first"),
        )
        .get(
            "/users/{user}/followers",
            Open(Scope::UserRead),
            follows::followers,
            people("Who follows someone, the latest first"),
        )
        .get(
            "/users/{user}/following",
            Open(Scope::UserRead),
            follows::following,
            people("Whom someone follows, the latest first"),
        )
        .get(
            "/users/{user}/following/{target}",
            Open(Scope::UserRead),
            follows::check_other,
            about("Whether one follows another").gives_nothing(),
        )
        .get(
            "/user/following/{user}",
            Logged(Scope::UserRead),
            follows::check,
            about("Whether the caller follows someone").gives_nothing(),
        )
        .put(
            "/user/following/{user}",
            Logged(Scope::User),
            follows::follow,
            about("Follow someone").takes_nothing().gives_nothing(),
        )
        .delete(
            "/user/following/{user}",
            Logged(Scope::User),
            follows::unfollow,
            about("Follow someone no more").gives_nothing(),
        )
}

fn content() -> Routes {
    let content = |summary| about(summary).query(REF.0, REF.1).gives_one_or_many::<Content>().or_media(RAW);
    let readme = |summary| about(summary).query(REF.0, REF.1).gives::<Content>().or_media(RAW);
    let read = Open(Scope::RepoRead);
    Routes::of("Contents")
        .get("/repos/{owner}/{repo}/contents", read, contents::show, content("The root directory"))
        .get("/repos/{owner}/{repo}/contents/", read, contents::show, content("The root directory, with a slash"))
        .get("/repos/{owner}/{repo}/contents/{*path}", read, contents::show, content("A file or directory"))
        .get("/repos/{owner}/{repo}/readme", read, contents::readme, readme("The README"))
        .get("/repos/{owner}/{repo}/readme/{*dir}", read, contents::readme, readme("A directory's README"))
}

fn history() -> Routes {
    let read = Open(Scope::RepoRead);
    Routes::of("History")
        .get("/repos/{owner}/{repo}/branches", read, refs::branches, about("Branches").gives_page::<ShortBranch>())
        .get("/repos/{owner}/{repo}/branches/{*branch}", read, refs::branch, about("A branch").gives::<Branch>())
        .get(
            "/repos/{owner}/{repo}/tags",
            read,
            refs::tags,
            about("Tags, the highest version first").gives_page::<Tag>(),
        )
        .get(
            "/repos/{owner}/{repo}/commits",
            read,
            commits::list,
            about("Commits, the latest first")
                .query("sha", "Where to begin: a branch, tag or commit.")
                .query("path", "Only commits that changed this file or directory.")
                .query("author", "Only commits whose author's name or address contains this.")
                .query("since", "Only commits from this time on.")
                .query("until", "Only commits up to this time.")
                .gives_page::<CommitItem>(),
        )
        .get(
            "/repos/{owner}/{repo}/commits/{*ref}",
            read,
            commits::show,
            about("A commit and what it changed")
                .gives::<FullCommit>()
                .or_media(DIFFS)
                .or_media(&["application/vnd.github.sha"]),
        )
        .get(
            "/repos/{owner}/{repo}/compare/{*basehead}",
            read,
            commits::compare,
            about("What a head brings over a base, written base...head").gives::<Comparison>().or_media(DIFFS),
        )
}

fn git_objects() -> Routes {
    let read = Open(Scope::RepoRead);
    Routes::of("Git objects")
        .get("/repos/{owner}/{repo}/git/refs", read, refs::refs, about("All refs").gives_page::<GitRef>())
        .get(
            "/repos/{owner}/{repo}/git/refs/{*ref}",
            read,
            refs::one,
            about("A ref, by its older address").gives::<GitRef>(),
        )
        .get("/repos/{owner}/{repo}/git/ref/{*ref}", read, refs::one, about("A ref").gives::<GitRef>())
        .get(
            "/repos/{owner}/{repo}/git/matching-refs/{*ref}",
            read,
            refs::matching,
            about("Refs whose names start with this").gives_page::<GitRef>(),
        )
        .get(
            "/repos/{owner}/{repo}/git/trees/{*sha}",
            read,
            objects::tree,
            about("A directory").query("recursive", "Anything: what is below it too.").gives::<GitTree>(),
        )
        .get(
            "/repos/{owner}/{repo}/git/commits/{sha}",
            read,
            objects::commit,
            about("A commit alone").gives::<GitCommit>(),
        )
        .get(
            "/repos/{owner}/{repo}/git/blobs/{sha}",
            read,
            objects::blob,
            about("A file's content").gives::<GitBlob>().or_media(RAW),
        )
        .get("/repos/{owner}/{repo}/git/tags/{sha}", read, objects::tag, about("An annotated tag").gives::<GitTag>())
}
