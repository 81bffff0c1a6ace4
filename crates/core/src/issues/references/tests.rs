use super::*;
use proptest::prelude::*;
use rstest::rstest;

fn people(text: &str) -> Vec<String> {
    in_markdown(text).people.iter().map(UserName::to_string).collect()
}

fn issues(text: &str) -> Vec<String> {
    let shown = |reference: Reference| {
        let slug = reference.repo.map(|(owner, name)| format!("{owner}/{name}")).unwrap_or_default();
        format!("{slug}#{}{}", reference.number, if reference.closes { "!" } else { "" })
    };
    in_markdown(text).issues.into_iter().map(shown).collect()
}

#[rstest]
#[case("@alice", &["alice"])]
#[case("Thanks, @Alice and @bob-2.", &["alice", "bob-2"])]
#[case("(@alice) *@bob* \"@carol\" @alice", &["alice", "bob", "carol"])]
#[case("@alice, @bob: @carol! @dave? @erin's", &["alice", "bob", "carol", "dave", "erin"])]
#[case("alice@example.org a@b @ @- user@host.org", &[])]
#[case("https://example.org/@alice @scope/package \\@alice", &[])]
#[case("@aliceäöü", &[])]
fn people_are_found_where_they_are_meant(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(people(text), expected);
}

#[rstest]
#[case("#1 and (#23), #1 again", &["#1", "#23"])]
#[case("alice/tool#7 Alice/Tool#7", &["alice/tool#7"])]
#[case("#0 #01 #x #1x a#1 &#12; ##2 #99999999999999999999", &[])]
#[case("a/b/c#1 /b#1 https://example.org/a/b#1 tool#1", &[])]
#[case("\\#1 @a#2", &[])]
fn issues_are_found_where_they_are_meant(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(issues(text), expected);
}

#[rstest]
#[case("`@alice #1` @bob", &["bob"])]
#[case("`` `@alice` `` @bob", &["bob"])]
#[case("unclosed ` @alice", &["alice"])]
#[case("\\`@alice\\`", &["alice"])]
#[case("```\n@alice\n```\n@bob", &["bob"])]
#[case("~~~ rust\n@alice\n```\n@alice\n~~~\n@bob", &["bob"])]
#[case("````\n```\n@alice\n````\n@bob", &["bob"])]
#[case("```\n@alice", &[])]
#[case("text\n\n    @alice\n    @alice\n\n@bob", &["bob"])]
#[case("\t@alice\n@bob", &["bob"])]
#[case("- item\n\n    @alice\n", &["alice"])]
#[case("1. item\n   ```\n   @alice\n   ```\n@bob", &["bob"])]
#[case("text\n    @alice", &["alice"])]
#[case("<!-- @alice\n#1 --> @bob", &["bob"])]
#[case("a `span\nover` @alice lines", &["alice"])]
#[case("a `span\n\n@alice` b", &["alice"])]
fn code_and_comments_speak_to_nobody(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(people(text), expected, "{text:?}");
}

#[test]
fn every_closing_word_closes_in_any_case_and_nothing_else_does() {
    for word in CLOSING {
        for text in [format!("{word} #1"), format!("This {} #1.", word.to_uppercase()), format!("{word}: #1")] {
            assert_eq!(issues(&text), ["#1!"], "{text}");
        }
        for text in [
            format!("{word}#1 #1"),
            format!("un{word} #1"),
            format!("{word}- #1"),
            format!("{word} x #1"),
            format!("pre-{word} #1"),
        ] {
            assert_eq!(issues(&text), ["#1"], "{text}");
        }
    }
    assert_eq!(issues("fixes #1, #2 and closes alice/tool#3"), ["#1!", "#2", "alice/tool#3!"]);
    assert_eq!(issues("see #1\n\nFixes #1"), ["#1!"], "once is enough");
}

#[test]
fn no_text_refers_to_more_than_so_many() {
    let text: String = (1..200).map(|number| format!("@user{number} #{number} ")).collect();
    let found = in_markdown(&text);
    assert_eq!((found.people.len(), found.issues.len()), (MAX_FOUND, MAX_FOUND));
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics_and_marks_lie_in_it(text in "(?s)[ -~äß\n\t`@#/]{0,200}") {
        let prose = prose(&text);
        prop_assert_eq!(prose.lines().count(), text.lines().count());
        let mut last = 0;
        for (start, end, _) in marks(&prose) {
            prop_assert!(last <= start && start < end);
            prop_assert!(prose.is_char_boundary(start) && prose.is_char_boundary(end));
            last = end;
        }
    }

    #[test]
    fn any_text_at_all_is_read(text: String) {
        in_markdown(&text);
        in_text(&text);
    }

    #[test]
    fn whatever_is_fenced_is_not_heard(inner in "[a-z@#0-9 \n]{0,80}") {
        let found = in_markdown(&format!("```\n{inner}\n```\n"));
        prop_assert_eq!(found, Found::default());
    }

    #[test]
    fn a_number_is_found_wherever_it_stands_alone(number in 1..i64::MAX, before in "[a-z]{0,5}") {
        let found = in_text(&format!("{before} #{number}, then"));
        prop_assert_eq!(found.issues.len(), 1);
        prop_assert_eq!(found.issues[0].number, number);
    }
}
