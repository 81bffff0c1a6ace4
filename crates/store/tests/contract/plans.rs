//! Hot statements go through an index, whatever the size of the table.

use crate::support::{Raw, World};
use abide_store::{Sql, all_statements};
use abide_testkit::Engine;
use rstest::rstest;

/// A hot statement and the index that each engine should find its rows by.
struct Hot {
    module: &'static str,
    name: &'static str,
    sqlite: &'static [&'static str],
    postgres: &'static [&'static str],
}

const fn hot(
    module: &'static str,
    name: &'static str,
    sqlite: &'static [&'static str],
    postgres: &'static [&'static str],
) -> Hot {
    Hot { module, name, sqlite, postgres }
}

const BY_REPO: &[&str] = &["purgatory_proposal_repos_by_repo"];

const HOT: &[Hot] = &[
    hot(
        "repos",
        "BY_SLUG",
        &["sqlite_autoindex_users_1", "sqlite_autoindex_user_redirects_1", "repos_live_name", "repo_redirects_by_name"],
        &["users_name_key", "user_redirects_pkey", "repos_live_name", "repo_redirects_by_name"],
    ),
    hot("repos", "DELETED_UNTIL", &["repos_deleted"], &["repos_deleted"]),
    hot("repos", "DELETED_OF_OWNER", &["repos_deleted_of_owner"], &["repos_deleted_of_owner"]),
    hot("audit", "RENAMES", &["audit_log_renames"], &["audit_log_renames"]),
    hot("audit", "PAGE_OF_REPO", &["audit_log_by_repo"], &["audit_log_by_repo"]),
    hot("transfers", "DUE", &["repo_transfers_due"], &["repo_transfers_due"]),
    hot("transfers", "COUNT_TO_ANSWER", &["repo_transfers_by_recipient"], &["repo_transfers_by_recipient"]),
    hot("transfers", "PENDING_OF_REPO", &["repo_transfers_one_pending"], &["repo_transfers_one_pending"]),
    hot("repos", "BY_ID", &["r USING INTEGER PRIMARY KEY"], &["repos_pkey"]),
    hot("repos", "LOCK", &["repos USING INTEGER PRIMARY KEY"], &["repos_pkey"]),
    hot("repos", "REF_STATE", &["repos USING INTEGER PRIMARY KEY"], &["repos_pkey"]),
    hot(
        "users",
        "BY_NAME",
        &["sqlite_autoindex_users_1", "emails_one_primary"],
        &["users_name_key", "emails_one_primary"],
    ),
    hot(
        "users",
        "BY_ANY_NAME",
        &["sqlite_autoindex_users_1", "sqlite_autoindex_user_redirects_1"],
        &["users_name_key", "user_redirects_pkey"],
    ),
    hot("users", "BY_EMAIL", &["sqlite_autoindex_emails_1"], &["emails_folded_key"]),
    hot("sessions", "OPEN", &["sqlite_autoindex_sessions_1"], &["sessions_pkey", "users_pkey"]),
    hot("links", "OPEN", &["sqlite_autoindex_one_time_links_1"], &["one_time_links_hash_key"]),
    hot("tokens", "BY_HASH", &["sqlite_autoindex_tokens_1"], &["tokens_hash_key"]),
    hot("ssh_keys", "BY_FINGERPRINT", &["sqlite_autoindex_ssh_keys_1"], &["ssh_keys_fingerprint_key"]),
    hot("collaborators", "ROLE", &["(repo_id=? AND user_id=?)"], &["Index Cond: ((user_id = $2) AND (repo_id = $1))"]),
    hot(
        "nostr_query",
        "BY_TAG",
        &["PRIMARY KEY (key=? AND created_at>? AND created_at<?)"],
        &["Index Only Scan Backward using nostr_tags_pkey"],
    ),
    hot(
        "nostr_query",
        "BY_AUTHOR",
        &["nostr_events_by_author (pubkey=? AND created_at>?"],
        &["Scan Backward using nostr_events_by_author"],
    ),
    hot(
        "nostr_query",
        "BY_KIND",
        &["nostr_events_by_kind (kind=? AND created_at>?"],
        &["Scan Backward using nostr_events_by_kind"],
    ),
    hot("nostr_query", "BY_TIME", &["nostr_events_by_time"], &["Scan Backward using nostr_events_by_time"]),
    hot("nostr_query", "BY_IDS", &["sqlite_autoindex_nostr_events_1"], &["nostr_events_event_id_key"]),
    hot("nostr_relations", "SLOTS", &["nostr_events_slot"], &["nostr_events_slot"]),
    hot("nostr_relations", "TAGGED", &["PRIMARY KEY (key=?)"], &["nostr_tags_pkey"]),
    hot(
        "nostr_relations",
        "AUTHORS",
        &["nostr_events_by_author", "users_by_npub"],
        &["nostr_events_by_author", "users_by_npub"],
    ),
    hot("nostr_events", "OF_SLOT", &["nostr_events_slot"], &["nostr_events_slot"]),
    hot("nostr_events", "OF_SLOT_BY", &["nostr_events_slot"], &["nostr_events_slot"]),
    hot(
        "nostr_statuses",
        "NEWEST",
        &["nostr_events_statuses (status_of=? AND pubkey=?)"],
        &["Scan using nostr_events_statuses"],
    ),
    hot("user_keys", "ACCOUNTS", &["users_by_npub"], &["users_by_npub"]),
    hot("quotas", "LOCK", &["nostr_keys USING PRIMARY KEY"], &["nostr_keys_pkey"]),
    hot("quotas", "OF_KEY", &["nostr_keys USING PRIMARY KEY"], &["nostr_keys_pkey"]),
    hot("quotas", "ADDRESSES", &["nostr_addresses_by_day (day=? AND address=?)"], &["nostr_addresses_pkey"]),
    hot("jobs", "PICK", &["jobs_due"], &["jobs_due"]),
    hot("jobs", "REAP", &["jobs_running"], &["jobs_running"]),
    hot("jobs", "PRUNE", &["jobs_finished"], &["jobs_finished"]),
    hot("events", "NUMBER", &["domain_events USING COVERING INDEX", "(seq=?)"], &["domain_events_unnumbered"]),
    hot(
        "events",
        "COUNT_UNNUMBERED",
        &["domain_events USING COVERING INDEX", "(seq=?)"],
        &["domain_events_unnumbered"],
    ),
    hot("events", "AFTER", &["sqlite_autoindex_domain_events_1"], &["domain_events_seq_key"]),
    hot("audit", "UNSEALED", &["audit_log USING INDEX", "(seq=?)"], &["audit_log_unsealed"]),
    hot("audit", "COUNT_UNSEALED", &["audit_log USING COVERING INDEX", "(seq=?)"], &["audit_log_unsealed"]),
    hot("audit", "SEALED", &["sqlite_autoindex_audit_log_1"], &["audit_log_seq_key"]),
    hot("pushes", "ORPHANED", &["pushes_running"], &["pushes_running"]),
    hot("pushes", "RUNNING_OF_REPO", &["pushes_running_of_repo"], &["pushes_running_of_repo"]),
    hot("pushes", "PRUNE", &["pushes_ended"], &["pushes_ended"]),
    hot("pushes", "RUNNING", &["pushes_running"], &["pushes_running"]),
    hot("forks", "OF_OWNER", &["repos_by_fork_source"], &["repos_by_fork_source"]),
    hot("forks", "COUNT", &["repos_by_fork_source"], &["repos_by_fork_source"]),
    hot("forks", "COUNTS", &["repos_by_fork_source"], &["repos_by_fork_source"]),
    hot("topics", "OF_MANY", &["sqlite_autoindex_repo_topics_1"], &["repo_topics_pkey"]),
    hot("stars", "HAS", &["sqlite_autoindex_stars_1"], &["stars_pkey"]),
    hot("stars", "OF_REPO", &["stars_by_repo"], &["stars_by_repo"]),
    hot("stars", "OF_USER", &["stars_by_user"], &["stars_by_user"]),
    hot("stars", "FOUND_OF_USER", &["stars_by_user"], &["stars_by_user"]),
    hot("watches", "LEVEL", &["sqlite_autoindex_watches_1"], &["watches_pkey"]),
    hot("watches", "OF_REPO", &["watches_by_repo"], &["watches_by_repo"]),
    hot("watches", "OF_USER", &["watches_by_user"], &["watches_by_user"]),
    hot("follows", "HAS", &["sqlite_autoindex_follows_1"], &["follows_pkey"]),
    hot("follows", "FOLLOWERS", &["follows_by_followed"], &["follows_by_followed"]),
    hot("follows", "FOLLOWING", &["follows_by_follower"], &["follows_by_follower"]),
    hot("issues", "BY_NUMBER", &["sqlite_autoindex_issues_1"], &["issues_repo_id_number_key"]),
    hot("issues", "COUNTS", &["sqlite_autoindex_issue_counters_1"], &["issue_counters_pkey"]),
    hot("comments", "OF_ISSUE", &["comments_by_issue"], &["comments_by_issue"]),
    hot("comments", "OLDEST_OF_REPO", &["comments_by_repo"], &["comments_by_repo"]),
    hot("comments", "LATEST_OF_REPO", &["comments_by_update"], &["comments_by_update"]),
    hot("comments", "COUNT_OF_REPO", &["comments_by_update"], &["comments_by_update"]),
    hot("labels", "OF_MANY", &["sqlite_autoindex_issue_labels_1"], &["issue_labels_pkey"]),
    hot("issue_timeline", "CHANGES", &["issue_events_by_issue"], &["issue_events_by_issue"]),
    hot("issue_timeline", "PAGE", &["issue_events_by_issue"], &["issue_events_by_issue"]),
    hot("feeds", "PUBLIC", &["domain_events_told_in_public"], &["domain_events_told_in_public"]),
    hot("feeds", "OF_REPO", &["domain_events_told_by_repo"], &["domain_events_told_by_repo"]),
    hot("feeds", "OF_ACTOR", &["domain_events_told_by_actor"], &["domain_events_told_by_actor"]),
    hot(
        "feeds",
        "HOME",
        &["domain_events_told_by_repo", "domain_events_told_by_actor"],
        &["domain_events_told_by_repo", "domain_events_told_by_actor"],
    ),
    hot("feeds", "AFTER", &["domain_events_told "], &["domain_events_told "]),
    hot("webhooks", "LISTENING", &["webhooks_by_repo"], &["webhooks_by_repo"]),
    hot("webhooks", "PICK", &["webhooks_due"], &["webhooks_due"]),
    hot("webhooks", "ANYTHING", &["webhooks_due"], &["webhooks_due"]),
    hot("deliveries", "OLDEST", &["webhook_deliveries_waiting"], &["webhook_deliveries_waiting"]),
    hot("deliveries", "OF_HOOK", &["webhook_deliveries_by_hook"], &["webhook_deliveries_by_hook"]),
    hot("deliveries", "LATEST_TRIED", &["webhook_deliveries_tried"], &["webhook_deliveries_tried"]),
    hot("deliveries", "PRUNE", &["webhook_deliveries_by_age"], &["webhook_deliveries_by_age"]),
    hot(
        "notifications",
        "CROWD",
        &["watches_told", "sqlite_autoindex_issue_subscriptions_1"],
        &["watches_told", "issue_subscriptions_pkey"],
    ),
    hot("notification_mail", "DUE", &["notifications_mail_due"], &["notifications_mail_due"]),
    hot("inbox", "UNREAD", &["notifications_unread"], &["notifications_unread"]),
    hot("inbox", "KEPT", &["notifications_inbox"], &["notifications_inbox"]),
    hot("inbox", "COUNT_SOME", &["notifications_unread"], &["notifications_unread"]),
    hot("purgatory_proposals", "OF_REPO", BY_REPO, &["purgatory_proposal_repos_by_repo", "purgatory_proposals_pkey"]),
    hot("purgatory_proposals", "COUNT", BY_REPO, BY_REPO),
    hot("sync_queue", "PICK", &["sync_queue_due"], &["sync_queue_due"]),
    hot("sync_relays", "PICK", &["sync_relays_due"], &["sync_relays_due"]),
    hot("sync_relays", "SERVED", &["sync_relay_repos_by_url"], &["sync_relay_repos_by_url"]),
    hot("sync_relays", "REFUSED", &["sync_refused_by_window"], &["sync_refused_by_window"]),
    hot("sync_domains", "MADE", &["sync_requests_by_domain"], &["sync_requests_by_domain"]),
    hot("sync_domains", "FIRST", &["sync_turns_in_order"], &["sync_turns_in_order"]),
    hot("leases", "HELD", &["sqlite_autoindex_leases_1"], &["leases_pkey"]),
];

async fn hot_statements_find_their_rows_by_the_right_index(engine: Engine, raw: &mut Raw) -> Vec<String> {
    let mut wrong = Vec::new();
    for hot in HOT {
        let found = all_statements().find(|(module, sql)| *module == hot.module && sql.name == hot.name);
        let (_, sql) = found.unwrap_or_else(|| panic!("{}::{} is gone", hot.module, hot.name));
        let plan = plan(raw, text(sql, engine)).await;
        let indexes = if engine == Engine::Sqlite { hot.sqlite } else { hot.postgres };
        if indexes.iter().any(|index| !plan.contains(index)) || !full_scans(&plan).is_empty() {
            wrong.push(format!("{}::{} should use {indexes:?}:\n{plan}", hot.module, hot.name));
        }
    }
    wrong
}

/// Statements that go through a whole table and may.
const MAY_SCAN: &[(&str, &str)] = &[
    // Asked for by the operator, and jobs that have ended are forgotten soon.
    ("jobs", "LIST"),
    ("jobs", "COUNT"),
    // Walks two indexes in the same order and stops at its LIMIT.
    ("users", "LIST"),
    // Once per start, and there are as many leases as there were pushed-to repositories.
    ("leases", "EXPIRE_OF"),
    // Asked for by admins: text that is contained anywhere, and a log that is read from its end until enough is found.
    ("users", "SEARCH"),
    ("users", "COUNT_FOUND"),
    ("audit", "PAGE"),
    // Asked by the doctor: what should not be there, over all of it.
    ("redirects", "IDLE"),
    // Once for each key that is linked; it lists foreign keys, and pushes that have ended are forgotten soon.
    ("user_merge", "REMOVE"),
    ("transfers", "OF_DELETED"),
    ("stars", "MISCOUNTED"),
    ("watches", "MISCOUNTED"),
    // A row per consumer; and what was set aside, which the operator settles.
    ("consumers", "EVERY"),
    ("events", "PRUNE"),
    // As many as were removed since the last sweep.
    ("purges", "COUNT"),
    // Stops at the first row.
    ("users", "ANY"),
    // SQLite lists what it would look through if foreign keys were open, which they never are.
    ("users", "INSERT"),
    ("nostr_repos", "INSERT_USER"),
    // Purgatory is bounded by number, and these statements count or show all of it.
    ("purgatory", "COUNTS"),
    ("purgatory", "TOTALS"),
    ("purgatory_attached", "HOMELESS"),
    ("purgatory_attached", "HOMELESS_PR_EVENTS"),
    // Pushes of strangers that are being written: as many as git has slots for.
    ("reservations", "SUMS"),
    ("reservations", "EXPIRE_OF"),
    // One row.
    ("reservations", "LOCK"),
    // Bounded by purgatory; counted for the metrics.
    ("sync_queue", "COUNTS"),
    // A row per relay, counted for the metrics; and what nothing names any more, once a day.
    ("sync_relays", "COUNTS"),
    ("sync_relays", "PRUNE"),
    ("sync_relays", "PRUNE_REPOS"),
    // Bounded by their number; once for each minute.
    ("sync_relays", "BOUND_REFUSED"),
    // Repositories of the operator's relays: so many.
    ("sync_relays", "ALL_SERVED"),
    ("purgatory", "ANNOUNCEMENT_PAGE"),
    ("purgatory", "STATE_PAGE"),
    ("purgatory_proposals", "PAGE"),
    ("purgatory_proposals", "BYTES"),
    // Sums over all keys, once a minute on each node.
    ("quotas", "SUM_ALL"),
    // Walks the accounts by number, a page at a time, once a minute.
    ("quotas", "ACCOUNT_KEYS"),
    // Their own tests below: they look through a bounded number of issues or repositories.
    ("issue_list", "NEWEST"),
    ("issue_list", "OLDEST"),
    ("issue_list", "LATEST"),
    ("issue_list", "STALEST"),
    ("issue_list", "LOUDEST"),
    ("issue_list", "QUIETEST"),
    ("issue_list", "COUNT"),
    ("issue_search", "LIST_WRITTEN"),
    ("issue_search", "COUNT_WRITTEN"),
    ("issue_search", "LIST_ASSIGNED"),
    ("issue_search", "COUNT_ASSIGNED"),
    ("issue_search", "LIST_NAMING"),
    ("issue_search", "COUNT_NAMING"),
    ("issue_search", "LIST_HEARD"),
    ("issue_search", "COUNT_HEARD"),
    ("issue_search", "LIST_IN_REPO"),
    ("issue_search", "COUNT_IN_REPO"),
    ("issue_search", "LIST_RECENT"),
    ("issue_search", "COUNT_RECENT"),
    ("search", "LIST_RECENT"),
    ("search", "COUNT_RECENT"),
    ("search", "LIST_OWNED"),
    ("search", "COUNT_OWNED"),
    ("search", "LIST_TAGGED"),
    ("search", "COUNT_TAGGED"),
];

async fn searches_never_read_all_repositories(engine: Engine, raw: &mut Raw) -> Vec<String> {
    let mut wrong = Vec::new();
    for (module, sql) in all_statements().filter(|(module, _)| *module == "search") {
        let index = match sql.name {
            "LIST_RECENT" | "COUNT_RECENT" => "repos_by_update",
            "LIST_TAGGED" | "COUNT_TAGGED" => "repo_topics_by_topic",
            _ => "repos_by_owner",
        };
        let plan = plan(raw, text(sql, engine)).await;
        // PostgreSQL may read all people when there are fewer of them than repositories to look at.
        let whole =
            |line: &&str| ["on repos", "on repo_topics", "SCAN s", "SCAN t"].iter().any(|table| line.contains(table));
        let scans: Vec<_> = full_scans(&plan).into_iter().filter(whole).filter(|line| !line.contains(index)).collect();
        if !plan.contains(index) || !scans.is_empty() {
            wrong.push(format!("{module}::{} should use {index}:\n{plan}", sql.name));
        }
    }
    wrong
}

async fn a_list_of_issues_walks_the_index_of_its_order(engine: Engine, raw: &mut Raw) -> Vec<String> {
    let mut wrong = Vec::new();
    for (_, sql) in all_statements().filter(|(module, _)| *module == "issue_list") {
        let index = match (sql.name, engine) {
            ("LATEST" | "STALEST", _) => "issues_by_update",
            ("LOUDEST" | "QUIETEST", _) => "issues_by_comments",
            (_, Engine::Sqlite) => "sqlite_autoindex_issues_1",
            (_, Engine::Postgres) => "issues_repo_id_number_key",
        };
        let plan = plan(raw, text(sql, engine)).await;
        if !plan.contains(index) || ["Seq Scan on issues", "SCAN s"].iter().any(|scan| plan.contains(scan)) {
            wrong.push(format!("{} should use {index}:\n{plan}", sql.name));
        }
    }
    wrong
}

async fn a_search_for_issues_never_reads_all_of_them(engine: Engine, raw: &mut Raw) -> Vec<String> {
    let mut wrong = Vec::new();
    for (_, sql) in all_statements().filter(|(module, sql)| *module == "issue_search" && sql.name != "REPOS") {
        let index = match sql.name.split_once('_').expect("what of which source").1 {
            "WRITTEN" => "issues_by_author",
            "ASSIGNED" => "issue_assignees_by_user",
            "NAMING" => "issue_mentions_by_user",
            "HEARD" => "issue_subscriptions_by_user",
            "IN_REPO" => "issues_by_update",
            _ => "issues_by_time",
        };
        let plan = plan(raw, text(sql, engine)).await;
        let tables = ["on issues", "on issue_", "SCAN s", "SCAN b", "SCAN n", "SCAN l"];
        let whole = |line: &&str| tables.iter().any(|table| line.contains(table)) && !line.contains(index);
        let scans: Vec<_> = full_scans(&plan).into_iter().filter(whole).collect();
        if !plan.contains(index) || !scans.is_empty() {
            wrong.push(format!("issue_search::{} should use {index}:\n{plan}", sql.name));
        }
    }
    wrong
}

async fn no_other_statement_goes_through_a_whole_table(engine: Engine, raw: &mut Raw) -> Vec<String> {
    let mut scans = Vec::new();
    for (module, sql) in all_statements().filter(|(module, sql)| !MAY_SCAN.contains(&(module, sql.name))) {
        let plan = plan(raw, text(sql, engine)).await;
        if !full_scans(&plan).is_empty() {
            scans.push(format!("{module}::{}:\n{plan}", sql.name));
        }
    }
    scans
}

/// One database for all questions: filling it takes longer than asking them.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn statements_come_by_their_rows_through_an_index(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = large(engine).await;
    let mut raw = world.raw().await;
    let mut wrong = hot_statements_find_their_rows_by_the_right_index(engine, &mut raw).await;
    wrong.extend(searches_never_read_all_repositories(engine, &mut raw).await);
    wrong.extend(a_list_of_issues_walks_the_index_of_its_order(engine, &mut raw).await);
    wrong.extend(a_search_for_issues_never_reads_all_of_them(engine, &mut raw).await);
    wrong.extend(no_other_statement_goes_through_a_whole_table(engine, &mut raw).await);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Questions by id or tag, each with everything else that can be asked for.
const NARROW: &[(&str, &str)] = &[
    ("BY_IDS", r#"'["00ff"]'"#),
    ("COUNT_BY_IDS", r#"'["00ff"]'"#),
    ("BY_TAG", "1007"),
    ("BY_TAGS", "'1007,1008'"),
    ("COUNT_BY_TAGS", "'1007,1008'"),
];

/// PostgreSQL plans by what it counted last, which may be long ago: when there were few events, all of those of one kind
/// or of all times were few as well.
#[tokio::test(flavor = "multi_thread")]
async fn narrow_questions_keep_their_way_in_when_postgresql_has_not_counted_for_long() {
    let world = World::new(Engine::Postgres).await;
    let mut raw = world.raw().await;
    let events = |from: i64, to: i64, kinds: i64| {
        format!(
            "INSERT INTO nostr_events (event_id, pubkey, kind, created_at, json, stored_at)
                SELECT sha256(convert_to('e' || n, 'UTF8')), sha256(convert_to('k' || n % 50, 'UTF8')), 1600 + n % {kinds}, n, '{{}}', 0
                FROM generate_series({from}, {to}) n;
            INSERT INTO nostr_tags (key, created_at, n) SELECT n % 90 + m * 1000, created_at, n
                FROM nostr_events, generate_series(1, 3) m WHERE created_at BETWEEN {from} AND {to}"
        )
    };
    for table in ["nostr_events", "nostr_tags"] {
        raw.execute(&format!("ALTER TABLE {table} SET (autovacuum_enabled = false)")).await;
    }
    raw.execute(&events(1, 500, 400)).await;
    raw.execute("ANALYZE nostr_events, nostr_tags").await;
    raw.execute(&events(501, 30_000, 2)).await;
    let mut wrong = Vec::new();
    for (name, first) in NARROW {
        let (_, sql) = all_statements().find(|(module, sql)| (*module, sql.name) == ("nostr_query", *name)).unwrap();
        raw.execute(&format!("PREPARE statement AS {}", text(sql, Engine::Postgres))).await;
        for mode in ["force_custom_plan", "force_generic_plan"] {
            raw.execute(&format!("SET plan_cache_mode = {mode}")).await;
            for (kinds, authors) in [("NULL", "NULL"), ("'1601'", "NULL"), ("NULL", r#"'["00ff"]'"#)] {
                let values = format!("{first}, 0, 9000000000, {kinds}, {authors}, '[]', 0, 100");
                let plan = raw.texts(&format!("EXPLAIN (COSTS OFF) EXECUTE statement({values})")).await.join("\n");
                let wide = [
                    "nostr_events_by_time",
                    "nostr_events_by_kind",
                    "nostr_events_by_author",
                    "Seq Scan on nostr_events",
                ];
                if wide.iter().any(|way| plan.contains(way)) {
                    wrong.push(format!("{name}({values}), {mode}:\n{plan}"));
                }
            }
        }
        raw.execute("DEALLOCATE statement").await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn text(sql: &Sql, engine: Engine) -> &'static str {
    sql.text(match engine {
        Engine::Sqlite => abide_store::Engine::Sqlite,
        Engine::Postgres => abide_store::Engine::Postgres,
    })
}

/// A database whose tables are large enough that PostgreSQL does not prefer to read all of them. SQLite does not count
/// rows when it plans.
async fn large(engine: Engine) -> World {
    let world = World::new(engine).await;
    if engine == Engine::Postgres {
        world.raw().await.execute(FILL).await;
    }
    world
}

const FILL: &str = include_str!("plans.sql");

/// The plan of a statement whatever its parameters, as text.
async fn plan(raw: &mut Raw, text: &str) -> String {
    match raw {
        Raw::Sqlite(conn) => {
            let query = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}")));
            let rows = query.fetch_all(conn).await.unwrap();
            rows.iter().map(|row| sqlx::Row::get::<String, _>(row, "detail")).collect::<Vec<_>>().join("\n")
        }
        Raw::Postgres(_) => {
            raw.execute("SET plan_cache_mode = force_generic_plan").await;
            raw.execute(&format!("PREPARE statement AS {text}")).await;
            let count = (1..).take_while(|number| text.contains(&format!("${number}"))).count();
            let values = if count == 0 { String::new() } else { format!("({})", vec!["NULL"; count].join(", ")) };
            let plan = raw.texts(&format!("EXPLAIN (COSTS OFF) EXECUTE statement{values}")).await;
            raw.execute("DEALLOCATE statement").await;
            plan.join("\n")
        }
    }
}

/// The lines of a plan that read a whole table, or the whole of an index that covers one.
fn full_scans(plan: &str) -> Vec<&str> {
    /// Their size is that of the work at hand, not of the table.
    const PARTIAL: &[&str] = &[
        "jobs_due",
        "jobs_running",
        "_unnumbered",
        "_unsealed",
        "pushes_running",
        "users_admins",
        "webhooks_due",
        "webhooks_held",
        "notifications_mail_due",
        "nostr_keys_empty",
        "sync_queue_due",
        "sync_queue_held",
        "sync_requests_running",
        "sync_relays_due",
        "sync_relays_held",
        "sync_relays_bootstrap",
    ];
    /// A row per log, per cron entry, per consumer of events and per popular repository.
    const SMALL: &[&str] = &["on log_heads", "on schedules", "on event_consumers", "on trending"];
    /// Result of a part of the statement, not a table.
    const PRODUCED: &[&str] = &[
        "SCAN fresh",
        "SCAN found",
        "SCAN kept",
        "SCAN run",
        "SCAN likings",
        "SCAN x",
        "SCAN both_kinds",
        "SCAN chosen_p",
        "SCAN lowest",
        "SCAN CONSTANT ROW",
        "SCAN (subquery",
        "SCAN SUBQUERY",
        "VIRTUAL TABLE",
        "SCAN watching",
        "SCAN hearing",
        "SCAN who",
        "SCAN counted",
        "SCAN weighed",
    ];
    let lines: Vec<&str> = plan.lines().collect();
    let mut scans = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let conditioned = lines.get(index + 1).is_some_and(|next| next.trim_start().starts_with("Index Cond"));
        let whole =
            line.contains("SCAN ") || line.contains("Seq Scan") || (line.contains("Scan using") && !conditioned);
        if whole && !PARTIAL.iter().chain(SMALL).chain(PRODUCED).any(|part| line.contains(part)) {
            scans.push(*line);
        }
    }
    scans
}
