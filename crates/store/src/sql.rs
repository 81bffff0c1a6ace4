//! Statements as constants that can be listed, so that a test can prepare every one on both engines.

use crate::Engine;

/// One statement. The text is the same for both engines unless stated otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    /// Name in the code.
    pub name: &'static str,
    pub(crate) module: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
    /// Number of parameters. SQLite would treat a missing value as NULL.
    pub(crate) parameters: usize,
}

impl Sql {
    #[doc(hidden)]
    pub const fn new(module: &'static str, name: &'static str, sqlite: &'static str, postgres: &'static str) -> Self {
        Self { name, module, sqlite, postgres, parameters: highest_parameter(postgres) }
    }

    /// Text for one engine.
    pub const fn text(&self, engine: Engine) -> &'static str {
        match engine {
            Engine::Sqlite => self.sqlite,
            Engine::Postgres => self.postgres,
        }
    }
}

/// The largest `$n` in a statement.
const fn highest_parameter(text: &str) -> usize {
    let text = text.as_bytes();
    let (mut highest, mut at) = (0, 0);
    while at < text.len() {
        if text[at] == b'$' {
            let mut number = 0;
            while at + 1 < text.len() && text[at + 1].is_ascii_digit() {
                at += 1;
                number = number * 10 + (text[at] - b'0') as usize;
            }
            if number > highest {
                highest = number;
            }
        }
        at += 1;
    }
    highest
}

/// Declares the statements of a module and lists them in `ALL`.
///
/// `NAME = "text";` serves both engines. `NAME = "text", postgres " FOR UPDATE";` appends a tail for PostgreSQL, where
/// rows are locked one by one; SQLite has a single writer anyway. `NAME = "text", sqlite "…", postgres "…";` gives each
/// its own tail, for the few things without a common spelling.
///
/// Columns are named, never `*`: another process may add one while this one keeps its prepared statements, and then
/// PostgreSQL refuses them and SQLite's driver reads past the columns that it knows.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr $(, sqlite $sqlite:expr)? $(, postgres $postgres:expr)?;)+) => {
        $($(#[$doc])* const $name: $crate::Sql = $crate::Sql::new(
            module_path!(),
            stringify!($name),
            concat!($text $(, $sqlite)?),
            concat!($text $(, $postgres)?),
        );)+

        /// Every statement of this module.
        pub(crate) const ALL: &[&$crate::Sql] = &[$(&$name),+];
    };
}
pub(crate) use statements;

/// Every statement of the store, with its module.
pub fn all_statements() -> impl Iterator<Item = (&'static str, &'static Sql)> {
    const MODULES: &[(&str, &[&Sql])] = &[
        ("audit", crate::audit::ALL),
        ("collaborators", crate::repos::collaborators::ALL),
        ("comments", crate::issues::comments::ALL),
        ("deliveries", crate::webhooks::deliveries::ALL),
        ("emails", crate::accounts::emails::ALL),
        ("events", crate::events::ALL),
        ("feeds", crate::attention::feeds::ALL),
        ("follows", crate::attention::follows::ALL),
        ("forks", crate::repos::forks::ALL),
        ("inbox", crate::attention::inbox::ALL),
        ("issue_list", crate::issues::list::ALL),
        ("issue_people", crate::issues::people::ALL),
        ("issue_search", crate::issues::search::ALL),
        ("issue_timeline", crate::issues::timeline::ALL),
        ("issues", crate::issues::ALL),
        ("jobs", crate::jobs::ALL),
        ("labels", crate::issues::labels::ALL),
        ("leases", crate::leases::ALL),
        ("links", crate::accounts::links::ALL),
        ("milestones", crate::issues::milestones::ALL),
        ("nostr_deleted", crate::nostr::deleted::ALL),
        ("nostr_events", crate::nostr::events::ALL),
        ("nostr_news", crate::nostr::news::ALL),
        ("nostr_query", crate::nostr::query::ALL),
        ("nostr_relations", crate::nostr::relations::ALL),
        ("notification_mail", crate::attention::notification_mail::ALL),
        ("notifications", crate::attention::notifications::ALL),
        ("nostr_repos", crate::nostr::repos::ALL),
        ("nostr_statuses", crate::nostr::statuses::ALL),
        ("purgatory", crate::nostr::purgatory::ALL),
        ("purgatory_attached", crate::nostr::purgatory::attached::ALL),
        ("purgatory_proposals", crate::nostr::purgatory::prs::ALL),
        ("purges", crate::repos::purges::ALL),
        ("pushes", crate::repos::pushes::ALL),
        ("proposal_refs", crate::nostr::pr_refs::ALL),
        ("quotas", crate::nostr::quotas::ALL),
        ("redirects", crate::repos::redirects::ALL),
        ("repos", crate::repos::ALL),
        ("reservations", crate::nostr::reservations::ALL),
        ("retire", crate::accounts::retire::ALL),
        ("search", crate::repos::search::ALL),
        ("consumers", crate::consumers::ALL),
        ("sequencer", crate::sequencer::ALL),
        ("sessions", crate::accounts::sessions::ALL),
        ("ssh_keys", crate::accounts::ssh_keys::ALL),
        ("stars", crate::attention::stars::ALL),
        ("sync_domains", crate::sync::domains::ALL),
        ("sync_queue", crate::sync::queue::ALL),
        ("sync_relays", crate::sync::relays::ALL),
        ("sync_sources", crate::sync::sources::ALL),
        ("throttles", crate::throttles::ALL),
        ("tokens", crate::accounts::tokens::ALL),
        ("topics", crate::repos::topics::ALL),
        ("totp", crate::accounts::totp::ALL),
        ("trending", crate::attention::trending::ALL),
        ("transfers", crate::repos::transfers::ALL),
        ("user_redirects", crate::accounts::user_redirects::ALL),
        ("user_keys", crate::accounts::user_keys::ALL),
        ("user_merge", crate::accounts::user_merge::ALL),
        ("users", crate::accounts::users::ALL),
        ("watches", crate::attention::watches::ALL),
        ("webhooks", crate::webhooks::ALL),
    ];
    MODULES.iter().flat_map(|(module, list)| list.iter().map(|sql| (*module, *sql)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_statement_are_counted_by_their_numbers() {
        for (text, count) in
            [("", 0), ("SELECT 1", 0), ("$1", 1), ("$2 + $1 + $2", 2), ("x = $12)", 12), ("DO $$ $$", 0)]
        {
            assert_eq!(highest_parameter(text), count, "{text}");
        }
    }
}
