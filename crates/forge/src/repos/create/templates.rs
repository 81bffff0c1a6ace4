//! Templates for a new repository: licences and `.gitignore` files.

/// A template.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    pub key: &'static str,
    /// Name for people.
    pub title: &'static str,
    pub(super) text: &'static str,
}

macro_rules! licences {
    ($($key:literal $title:literal,)+) => {
        &[$(Choice { key: $key, title: $title, text: include_str!(concat!("../../../assets/licences/", $key, ".txt")) }),+]
    };
}

macro_rules! gitignores {
    ($($key:literal $title:literal,)+) => {
        &[$(Choice {
            key: $key,
            title: $title,
            text: include_str!(concat!("../../../assets/gitignores/", $key, ".gitignore")),
        }),+]
    };
}

/// The licence templates; the keys are SPDX identifiers in lower case.
pub fn licences() -> &'static [Choice] {
    licences! {
        "mit" "MIT License",
        "apache-2.0" "Apache License 2.0",
        "gpl-3.0" "GNU General Public License v3.0",
        "agpl-3.0" "GNU Affero General Public License v3.0",
        "lgpl-3.0" "GNU Lesser General Public License v3.0",
        "gpl-2.0" "GNU General Public License v2.0",
        "lgpl-2.1" "GNU Lesser General Public License v2.1",
        "mpl-2.0" "Mozilla Public License 2.0",
        "bsd-3-clause" "BSD 3-Clause License",
        "bsd-2-clause" "BSD 2-Clause License",
        "isc" "ISC License",
        "unlicense" "The Unlicense",
        "cc0-1.0" "Creative Commons Zero v1.0 Universal",
    }
}

/// The `.gitignore` templates, by language.
pub fn gitignores() -> &'static [Choice] {
    gitignores! {
        "C" "C",
        "C++" "C++",
        "CSharp" "C#",
        "Go" "Go",
        "Haskell" "Haskell",
        "Java" "Java",
        "Kotlin" "Kotlin",
        "Node" "JavaScript and TypeScript (Node)",
        "PHP" "PHP",
        "Python" "Python",
        "Ruby" "Ruby",
        "Rust" "Rust",
        "Swift" "Swift",
        "TeX" "TeX",
        "Zig" "Zig",
    }
}

/// The template with this key, ignoring case.
pub(super) fn chosen(choices: &'static [Choice], key: &str) -> Option<&'static Choice> {
    choices.iter().find(|choice| choice.key.eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_a_key_of_its_own_and_a_text_that_ends_in_a_line() {
        for choices in [licences(), gitignores()] {
            for choice in choices {
                assert_eq!(choices.iter().filter(|other| other.key == choice.key).count(), 1, "{}", choice.key);
                assert!(choice.text.ends_with('\n') && !choice.text.ends_with("\n\n"), "{}", choice.key);
            }
        }
        assert_eq!(chosen(licences(), "MIT").map(|choice| choice.key), Some("mit"));
        assert!(chosen(gitignores(), "../C").is_none());
    }
}
