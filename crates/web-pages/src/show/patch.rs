//! A patch in the format of `git format-patch`: its message, and its diff line by line.

use super::text::escape_code_into;

/// Splits a patch into message and diff, without the mail headers.
pub(crate) fn split(content: &str) -> (String, Option<&str>) {
    let begins =
        content.find("\ndiff --git ").map(|at| at + 1).or_else(|| content.starts_with("diff --git ").then_some(0));
    let Some(begins) = begins else { return (content.to_owned(), None) };
    let (before, diff) = content.split_at(begins);
    let is_mail = before.starts_with("From ") || before.starts_with("From:") || before.starts_with("Subject:");
    let text = match before.split_once("\n\n") {
        Some((_, text)) if is_mail => text,
        _ if is_mail => "",
        _ => before,
    };
    let message = text.split("\n---\n").next().unwrap_or_default();
    let message = message.strip_prefix("---\n").map_or(message, |_| "");
    (message.trim().to_owned(), Some(diff))
}

/// A diff as HTML.
pub(crate) fn table(diff: &str) -> String {
    let mut out = String::from(
        r#"<div class="code-wrap" tabindex="0" role="region" aria-label="Changes"><table class="code diff"><tbody>"#,
    );
    for line in diff.lines() {
        let (class, sign, text) = match line.as_bytes().first() {
            _ if line.starts_with("+++ ") || line.starts_with("--- ") => (" class=\"hunk\"", " ", line),
            Some(b'+') => (" class=\"add\"", "+", &line[1..]),
            Some(b'-') => (" class=\"del\"", "−", &line[1..]),
            Some(b' ') => ("", " ", &line[1..]),
            None => ("", " ", ""),
            Some(_) => (" class=\"hunk\"", " ", line),
        };
        out.push_str("<tr");
        out.push_str(class);
        out.push_str("><td class=\"sign\">");
        out.push_str(sign);
        out.push_str("</td><td class=\"l\">");
        escape_code_into(text, &mut out);
        out.push_str("</td></tr>\n");
    }
    out.push_str("</tbody></table></div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "From abc Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\nSubject: [PATCH] Mend it\n\nWhy it was \
        broken.\n---\n a | 2 +-\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-<x>\n+y\n-- \n2.51\n";

    #[test]
    fn a_mailed_patch_is_its_message_and_its_change() {
        let (message, diff) = split(MAIL);
        assert_eq!(message, "Why it was broken.");
        let shown = table(diff.unwrap());
        assert!(shown.contains("<tr class=\"del\"><td class=\"sign\">−</td><td class=\"l\">&lt;x&gt;"), "{shown}");
        assert!(shown.contains("<tr class=\"hunk\"><td class=\"sign\"> </td><td class=\"l\">@@ -1 +1 @@"), "{shown}");
        assert_eq!(split("no patch"), ("no patch".to_owned(), None));
        assert_eq!(split("diff --git a b\n+x").0, "");
    }

    #[test]
    fn whatever_a_patch_holds_comes_out_as_text() {
        for odd in [
            "",
            "\n",
            "+",
            "<script>x</script>",
            "diff --git <script>\n+<script>",
            "From \n\ndiff --git \n\n-é",
            "---\n",
        ] {
            let (_, diff) = split(odd);
            let shown = table(diff.unwrap_or(odd));
            assert!(!shown.contains("<script") && shown.ends_with("</tbody></table></div>"), "{odd}: {shown}");
        }
    }
}
