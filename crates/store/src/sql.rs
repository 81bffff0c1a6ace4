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
        ("collaborators", crate::collaborators::ALL),
        ("comments", crate::comments::ALL),
        ("deliveries", crate::deliveries::ALL),
        ("emails", crate::emails::ALL),
        ("events", crate::events::ALL),
        ("feeds", crate::feeds::ALL),
        ("follows", crate::follows::ALL),
        ("forks", crate::forks::ALL),
        ("inbox", crate::inbox::ALL),
        ("issue_list", crate::issue_list::ALL),
        ("issue_people", crate::issue_people::ALL),
        ("issue_search", crate::issue_search::ALL),
        ("issue_timeline", crate::issue_timeline::ALL),
        ("issues", crate::issues::ALL),
        ("jobs", crate::jobs::ALL),
        ("labels", crate::labels::ALL),
        ("leases", crate::leases::ALL),
        ("links", crate::links::ALL),
        ("milestones", crate::milestones::ALL),
        ("nostr_deleted", crate::nostr_deleted::ALL),
        ("nostr_events", crate::nostr_events::ALL),
        ("nostr_news", crate::nostr_news::ALL),
        ("nostr_query", crate::nostr_query::ALL),
        ("nostr_relations", crate::nostr_relations::ALL),
        ("notification_mail", crate::notification_mail::ALL),
        ("notifications", crate::notifications::ALL),
        ("nostr_repos", crate::nostr_repos::ALL),
        ("nostr_statuses", crate::nostr_statuses::ALL),
        ("purgatory", crate::purgatory::ALL),
        ("purgatory_attached", crate::purgatory_attached::ALL),
        ("purgatory_proposals", crate::purgatory_proposals::ALL),
        ("purges", crate::purges::ALL),
        ("pushes", crate::pushes::ALL),
        ("proposal_refs", crate::proposal_refs::ALL),
        ("quotas", crate::quotas::ALL),
        ("redirects", crate::redirects::ALL),
        ("repos", crate::repos::ALL),
        ("reservations", crate::reservations::ALL),
        ("retire", crate::retire::ALL),
        ("search", crate::search::ALL),
        ("consumers", crate::consumers::ALL),
        ("sequencer", crate::sequencer::ALL),
        ("sessions", crate::sessions::ALL),
        ("ssh_keys", crate::ssh_keys::ALL),
        ("stars", crate::stars::ALL),
        ("throttles", crate::throttles::ALL),
        ("tokens", crate::tokens::ALL),
        ("topics", crate::topics::ALL),
        ("totp", crate::totp::ALL),
        ("trending", crate::trending::ALL),
        ("transfers", crate::transfers::ALL),
        ("user_redirects", crate::user_redirects::ALL),
        ("user_keys", crate::user_keys::ALL),
        ("user_merge", crate::user_merge::ALL),
        ("users", crate::users::ALL),
        ("watches", crate::watches::ALL),
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
