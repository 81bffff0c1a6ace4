use super::*;
use std::time::Duration;

crate::settings! {
    /// Joined with another section.
    #[derive(Debug, PartialEq)]
    struct Outer in "outer" {
        /// Maximum size of
        /// one thing.
        [Common] size: u64 = "1KiB", bytes(1..);
        /// URL of the database.
        [Common, Password] address as url: String = "", text;
    }
    with {
        /// Not a setting.
        constant: u8 = 7;
    }
    sections {
        inner: Inner;
    }
}

crate::settings! {
    /// A section.
    #[derive(Debug, PartialEq)]
    struct Inner in "inner" {
        /// Interval of attempts.
        every: Duration = "5m", duration(value::SECOND..);
    }
}

crate::settings! {
    /// Only sections.
    #[derive(Debug)]
    struct All
    sections {
        outer: Outer;
    }
}

struct Every(&'static str);

impl Texts for Every {
    fn of(&self, _: &'static Setting) -> &str {
        self.0
    }
}

#[test]
fn a_declaration_yields_the_struct_and_the_table() {
    let outer = Outer::default();
    assert_eq!((outer.size, outer.address.as_str(), outer.constant), (1024, "", 7));
    assert_eq!(outer.inner, Inner { every: Duration::from_secs(300) });
    assert_eq!(All::default().outer, outer);
    let mut all = Vec::new();
    All::declare(&mut all);
    assert_eq!(all.iter().map(|setting| setting.name).collect::<Vec<_>>(), ["outer.size", "outer.url", "inner.every"]);
    assert_eq!(all[0].help(), "Maximum size of one thing.");
    assert_eq!((all[0].section(), all[0].default), ("outer", "1KiB"));
    assert!(all[0].has(Mark::Common) && !all[0].has(Mark::Password) && !all[2].has(Mark::Common));
}

#[test]
fn an_invalid_text_names_its_setting_and_the_allowed_range() {
    let invalid = All::read(&Every("0")).unwrap_err();
    assert_eq!((invalid.setting.name, invalid.rule.as_str()), ("outer.size", "it must be 1B or more"));
    let invalid = Inner::read(&Every("1ms")).unwrap_err();
    assert_eq!((invalid.setting.name, invalid.rule.as_str()), ("inner.every", "it must be 1s or more"));
}

#[test]
fn a_password_is_not_shown() {
    const URL: &Setting = named::<Outer>("outer.url");
    assert_eq!(URL.shown("postgres://me:secret@host/db"), "postgres://me:***@host/db");
    assert_eq!(URL.shown("postgres://host/db"), "postgres://host/db");
    assert_eq!(named::<Outer>("outer.size").shown("a://b:c@d"), "a://b:c@d");
}
