//! Markdown to HTML. User text becomes HTML only here: rendered, then sanitised with a list of allowed elements and
//! attributes. Relative links and pictures lead into the repository at the same branch.
//!
//! Anyone may write a text, so its cost is bounded: nesting depth before anything is parsed (`nesting.rs`, `tags.rs`;
//! `clear.rs` drops tags that the sanitiser would drop), then CPU time and size of the HTML. A text beyond a bound is
//! shown unrendered.

mod clear;
mod nesting;
mod tags;

use super::budget::Budget;
use super::code;
use super::text::{escape_into, last_segment, shown, url_path};
use abide_core::issues::references::{self, Mark};
use ammonia::{Builder, UrlRelative};
use comrak::adapters::{HeadingAdapter, HeadingMeta, SyntaxHighlighterAdapter};
use comrak::arena_tree::NodeEdge;
use comrak::nodes::{Node, NodeLink, NodeValue, Sourcepos};
use comrak::options::Plugins;
use comrak::{Anchorizer, Arena, Options, format_html_with_plugins, parse_document};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Larger texts are shown unrendered.
const LARGEST: usize = 512 * 1024;
/// Maximum growth of a text by rendering, before it is sanitised: a table with one letter per cell grows six times, a
/// footnote with many references fifty times.
const GROWS: usize = 16;
/// Size of HTML that every text may have.
const SMALLEST_HTML: usize = 64 * 1024;
/// CPU time for one text.
pub(super) const ALLOWED: Duration = Duration::from_secs(1);

/// Base of relative URLs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Base {
    /// `owner/name`
    pub repo: String,
    /// The branch, tag or commit.
    pub at: String,
    pub dir: Vec<u8>,
}

/// Prefix that separates ids of a document from ids of the page.
const ID_PREFIX: &str = "user-content-";

/// Whether a file of that name is Markdown.
pub(crate) fn is_markdown(name: &[u8]) -> bool {
    let name = last_segment(name).to_ascii_lowercase();
    name.ends_with(b".md") || name.ends_with(b".markdown")
}

/// A document as sanitised HTML.
pub(crate) fn render(name: &[u8], data: &[u8], base: &Base) -> String {
    let text = String::from_utf8_lossy(data);
    if !is_markdown(name) {
        return format!("<div class=\"prose\">{}</div>", as_written(&text));
    }
    let mut options = options();
    options.extension.front_matter_delimiter = Some("---".into());
    framed(&text, &options, base, &Budget::new(ALLOWED), |_, _| {})
}

/// Text of an issue as sanitised HTML, with links for mentioned people and issues.
pub(crate) fn said(text: &str, base: &Base, site: &str, budget: &Budget) -> String {
    framed(text, &options(), base, budget, |arena, root| link_marks(arena, root, &base.repo, site))
}

/// An unrendered text with a note about the reason.
pub(crate) fn plain(text: &str) -> String {
    let why = "Shown as plain text: too large or too deeply nested to render as Markdown.";
    format!("<div class=\"prose\"><p class=\"muted\">{why}</p>{}</div>", as_written(text))
}

fn as_written(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str("<pre>");
    for line in text.lines() {
        escape_into(&shown(line.as_bytes()), &mut out);
        out.push('\n');
    }
    out.push_str("</pre>");
    out
}

fn options<'c>() -> Options<'c> {
    let mut options = Options::default();
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.extension.autolink = true;
    options.extension.tasklist = true;
    options.extension.footnotes = true;
    options.render.gfm_quirks = true;
    // HTML inside Markdown is common in READMEs; the sanitiser filters it below.
    options.render.r#unsafe = true;
    options
}

fn framed(
    text: &str,
    options: &Options,
    base: &Base,
    budget: &Budget,
    change: impl for<'a> Fn(&'a Arena<'a>, Node<'a>),
) -> String {
    if text.len() > LARGEST || !nesting::is_shallow(text) {
        return plain(text);
    }
    let arena = Arena::new();
    let root = parse_document(&arena, text, options);
    change(&arena, root);
    let safe = formatted(root, options, text.len(), budget).and_then(|html| {
        let html = clear::clear(&html, |name| KEPT.contains(name));
        match tags::check(&html) {
            Ok(()) => sanitise(&html, base.clone(), budget),
            Err(_) => without_markup(root, options, base, text.len(), budget),
        }
    });
    safe.map_or_else(|| plain(text), |html| format!("<div class=\"prose\">{html}</div>"))
}

/// A document whose inline HTML is shown as text.
fn without_markup<'a>(root: Node<'a>, options: &Options, base: &Base, size: usize, budget: &Budget) -> Option<String> {
    let mut options = options.clone();
    options.render.escape = true;
    let html = formatted(root, &options, size, budget)?;
    tags::check(&html).ok()?;
    sanitise(&html, base.clone(), budget)
}

/// The HTML of a document; `None` if it grows too large or takes too long.
fn formatted<'a>(root: Node<'a>, options: &Options, size: usize, budget: &Budget) -> Option<String> {
    let colours = Colours(budget);
    let headings = Headings::default();
    let mut plugins = Plugins::default();
    plugins.render.codefence_syntax_highlighter = Some(&colours);
    plugins.render.heading_adapter = Some(&headings);
    let mut html = Bounded { text: String::new(), largest: SMALLEST_HTML + GROWS * size, budget };
    format_html_with_plugins(root, options, &mut html, &plugins).ok()?;
    Some(html.text)
}

/// Output buffer with a limit on size and time.
struct Bounded<'b> {
    text: String,
    largest: usize,
    budget: &'b Budget,
}

impl fmt::Write for Bounded<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let fits = self.text.len() + piece.len() <= self.largest;
        // Reading the clock for every write would cost more than the write.
        let looks = self.text.len() / LOOK != (self.text.len() + piece.len()) / LOOK;
        if !fits || looks && self.budget.is_spent() {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

/// Bytes between two reads of the clock.
const LOOK: usize = 4096;

/// Turns `@name`, `#12` and `owner/repo#12` in running text into links. Their targets are not looked up, so links
/// reveal nothing about existence.
fn link_marks<'a>(arena: &'a Arena<'a>, root: Node<'a>, repo: &str, site: &str) {
    let texts = texts_outside_links(root);
    for node in texts {
        let text = match &node.data.borrow().value {
            NodeValue::Text(text) => text.to_string(),
            _ => continue,
        };
        let marks = references::marks(&text);
        if marks.is_empty() {
            continue;
        }
        let plain = |text: &str| arena.alloc(NodeValue::Text(text.to_owned().into()).into());
        let mut at = 0;
        for (start, end, mark) in marks {
            let url = match mark {
                Mark::Person(name) => format!("{site}/{name}"),
                Mark::Issue(None, number) => format!("{site}/{repo}/issues/{number}"),
                Mark::Issue(Some((owner, name)), number) => format!("{site}/{owner}/{name}/issues/{number}"),
            };
            let link = arena.alloc(NodeValue::Link(Box::new(NodeLink { url, title: String::new() })).into());
            node.insert_before(plain(&text[at..start]));
            link.append(plain(&text[start..end]));
            node.insert_before(link);
            at = end;
        }
        node.insert_before(plain(&text[at..]));
        node.detach();
    }
}

/// Nodes of running text. One walk over all, because looking up from each would cost the square of a deep text.
fn texts_outside_links<'a>(root: Node<'a>) -> Vec<Node<'a>> {
    let mut inside = 0;
    let mut texts = Vec::new();
    for edge in root.traverse() {
        let (node, enters) = match edge {
            NodeEdge::Start(node) => (node, true),
            NodeEdge::End(node) => (node, false),
        };
        match (&node.data.borrow().value, enters) {
            (NodeValue::Link(_) | NodeValue::Image(_), true) => inside += 1,
            (NodeValue::Link(_) | NodeValue::Image(_), false) => inside -= 1,
            (NodeValue::Text(_), true) if inside == 0 => texts.push(node),
            _ => (),
        }
    }
    texts
}

/// Allowed elements. Tags of others are dropped, scripts and styles with their content.
static KEPT: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let mut kept = Builder::default().clone_tags();
    kept.extend(["input", "picture", "source"]);
    kept
});

/// `None` if it takes too long.
fn sanitise(html: &str, base: Base, budget: &Budget) -> Option<String> {
    let heading = || HashSet::from(["id", "align"]);
    let mut builder = Builder::default();
    builder
        .tags(KEPT.clone())
        .add_tag_attributes("a", ["id", "aria-hidden", "name"])
        .add_tag_attributes("input", ["checked"])
        .add_tag_attributes("img", ["width", "height", "align", "alt", "src", "title"])
        .add_tag_attributes("p", ["align"])
        .add_tag_attributes("div", ["align"])
        .add_tag_attributes("li", ["id"])
        .add_tag_attributes("sup", ["id"])
        .add_tag_attributes("source", ["media", "type"])
        .add_tag_attributes("details", ["open"])
        .set_tag_attribute_value("input", "type", "checkbox")
        .set_tag_attribute_value("input", "disabled", "")
        .set_tag_attribute_value("input", "aria-label", "Task")
        .set_tag_attribute_value("img", "referrerpolicy", "no-referrer")
        .set_tag_attribute_value("img", "loading", "lazy")
        .add_allowed_classes("span", ["c", "s", "k", "t", "f", "v", "m", "g", "x", "odd-char"])
        .url_schemes(HashSet::from(["http", "https", "mailto", "irc", "ircs", "xmpp", "nostr", "ssh", "git"]))
        .url_relative(UrlRelative::PassThrough)
        .link_rel(Some("nofollow noopener noreferrer"))
        .id_prefix(None)
        .attribute_filter(move |element, attribute, value| filter(&base, element, attribute, value));
    for level in ["h1", "h2", "h3", "h4", "h5", "h6"] {
        builder.add_tag_attributes(level, heading());
    }
    builder.clean_from_reader(Timed { rest: html.as_bytes(), budget }).ok().map(|clean| clean.to_string())
}

/// Feeds a text to the parser in chunks until the time is used up.
struct Timed<'h> {
    rest: &'h [u8],
    budget: &'h Budget,
}

impl io::Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.budget.is_spent() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.rest.read(buffer)
    }
}

/// Decides about one attribute that is allowed as such.
fn filter<'v>(base: &Base, element: &str, attribute: &str, value: &'v str) -> Option<Cow<'v, str>> {
    match (element, attribute) {
        (_, "id" | "name") if value.starts_with(ID_PREFIX) => Some(value.into()),
        // The prefix keeps ids of a document from replacing ids of the page.
        (_, "id" | "name") => Some(format!("{ID_PREFIX}{value}").into()),
        ("a", "href") => match value.strip_prefix('#') {
            Some(fragment) if fragment.starts_with(ID_PREFIX) => Some(value.into()),
            Some(fragment) => Some(format!("#{ID_PREFIX}{fragment}").into()),
            None => Some(inside(base, "blob", value)),
        },
        ("img", "src") => Some(inside(base, "raw", value)),
        _ => Some(value.into()),
    }
}

/// Turns a relative URL into one of the repository's pages; absolute URLs stay unchanged.
fn inside<'v>(base: &Base, view: &str, address: &'v str) -> Cow<'v, str> {
    let has_scheme = address.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    if address.is_empty() || has_scheme || address.starts_with("//") || address.starts_with('\\') {
        return address.into();
    }
    let (path, rest) = match address.find(['?', '#']) {
        Some(at) => address.split_at(at),
        None => (address, ""),
    };
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    // A slash at the start means the repository's root.
    let mut parts: Vec<&[u8]> = match decoded.starts_with(b"/") {
        true => Vec::new(),
        false => base.dir.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect(),
    };
    for part in decoded.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => (),
            b".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let path = url_path(&parts.join(&b'/'));
    format!("/{}/{view}/{}/{path}{rest}", base.repo, url_path(base.at.as_bytes())).into()
}

/// Adds an id to each heading, for links inside the document.
#[derive(Default)]
struct Headings(Mutex<Anchorizer>);

impl HeadingAdapter for Headings {
    fn enter(&self, output: &mut dyn fmt::Write, heading: &HeadingMeta, _: Option<Sourcepos>) -> fmt::Result {
        let id = self.0.lock().unwrap_or_else(PoisonError::into_inner).anchorize(&heading.content);
        let mut escaped = String::new();
        escape_into(&id, &mut escaped);
        write!(output, "<h{} id=\"{ID_PREFIX}{escaped}\">", heading.level)
    }

    fn exit(&self, output: &mut dyn fmt::Write, heading: &HeadingMeta) -> fmt::Result {
        write!(output, "</h{}>", heading.level)
    }
}

/// Highlights fenced code until the time is used up.
struct Colours<'b>(&'b Budget);

impl SyntaxHighlighterAdapter for Colours<'_> {
    fn write_highlighted(&self, output: &mut dyn fmt::Write, language: Option<&str>, code: &str) -> fmt::Result {
        let language = language.and_then(|info| info.split([' ', ',', '{']).next()).filter(|token| !token.is_empty());
        output.write_str(&code::snippet(language, code, self.0, ALLOWED / 2))
    }

    fn write_pre_tag(&self, output: &mut dyn fmt::Write, _: HashMap<&'static str, Cow<'_, str>>) -> fmt::Result {
        output.write_str("<pre>")
    }

    fn write_code_tag(&self, output: &mut dyn fmt::Write, _: HashMap<&'static str, Cow<'_, str>>) -> fmt::Result {
        output.write_str("<code>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use html5ever::tendril::StrTendril;
    use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
    use std::cell::RefCell;

    fn base() -> Base {
        Base { repo: "ann/tool".into(), at: "feature/x".into(), dir: b"docs".to_vec() }
    }

    fn html(markdown: &str) -> String {
        render(b"README.md", markdown.as_bytes(), &base())
    }

    fn fallback(markdown: &str) -> bool {
        html(markdown).contains("Shown as plain text")
    }

    #[test]
    fn a_text_that_nests_too_deeply_is_shown_as_it_was_written() {
        for (unit, count) in [("> ", 60_000), (">", 60_000), ("- > ", 15_000), ("*a ", 5_000)] {
            let end = if unit == "*a " { "b*".repeat(count) } else { "<b>".into() };
            let text = unit.repeat(count) + &end;
            assert!(fallback(&text), "{unit}");
            assert!(!html(&text).contains("<b>"));
        }
        assert!(!fallback(&"> a\n\n".repeat(200)));
        assert!(fallback(&"a".repeat(LARGEST + 1)));
    }

    #[test]
    fn markup_that_nests_too_deeply_is_shown_as_text_in_a_document_that_is_not() {
        for unit in ["<div>", "<b><div></b>", "<i a=1><p>x"] {
            let out = html(&format!("# Title\n\nx {}", unit.repeat(2_000)));
            assert!(out.contains("<h1") && out.contains("&lt;") && !fallback(unit), "{unit}");
        }
    }

    #[test]
    fn a_text_that_becomes_much_more_than_it_was_is_shown_as_it_was_written() {
        assert!(fallback(&format!("[^a]: b\n\n{}", "[^a] ".repeat(40_000))));
    }

    #[test]
    fn a_text_whose_time_is_spent_is_shown_as_it_was_written() {
        let spent = Budget::new(Duration::ZERO);
        let out = said("*a* <b>", &base(), "https://forge.example", &spent);
        assert!(out.contains("Shown as plain text") && out.contains("*a* &lt;b&gt;"), "{out}");
    }

    #[test]
    fn people_and_issues_become_links_outside_of_links_only() {
        let fresh = Budget::new(ALLOWED);
        let out = said("@ann *#1* [@bob](x) ![@eve](y)", &base(), "https://forge.example", &fresh);
        assert!(out.contains("href=\"https://forge.example/ann\""), "{out}");
        assert!(out.contains("href=\"https://forge.example/ann/tool/issues/1\""), "{out}");
        assert!(!out.contains("forge.example/bob") && !out.contains("forge.example/eve"), "{out}");
    }

    #[test]
    fn relative_links_and_pictures_lead_into_the_repository() {
        let out =
            html("[a](guide.md#top) [b](../LICENSE) [c](/src) ![d](img/a%20b.png) [e](#part) [f](https://x.example/)");
        for part in [
            "href=\"/ann/tool/blob/feature/x/docs/guide.md#top\"",
            "href=\"/ann/tool/blob/feature/x/LICENSE\"",
            "href=\"/ann/tool/blob/feature/x/src\"",
            "src=\"/ann/tool/raw/feature/x/docs/img/a%20b.png\"",
            "href=\"#user-content-part\"",
            "href=\"https://x.example/\"",
        ] {
            assert!(out.contains(part), "{part} in {out}");
        }
    }

    #[test]
    fn nothing_that_runs_or_hides_survives() {
        for evil in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "<a href=\"jav&#x09;ascript:alert(1)\">x</a>",
            "<svg onload=alert(1)><script>alert(1)</script></svg>",
            "<iframe src=https://x.example></iframe>",
            "<form action=/logout method=post><button>x</button></form>",
            "<style>body{display:none}</style>",
            "<div style=\"position:fixed;inset:0\">x</div>",
            "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
            "<p class=\"btn primary\">x</p>",
            "<input type=text name=_token value=x>",
            "<base href=https://x.example>",
            "<meta http-equiv=refresh content=0;url=https://x.example>",
            "```<script>\nalert(1)\n```",
            "```rust\n</code></pre><script>alert(1)</script>\n```",
            "<details open ontoggle=alert(1)>x</details>",
            "[x](vbscript:msgbox)",
            "<a href=\"//x.example\" onclick=alert(1)>x</a>",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
        ] {
            assert_harmless(evil);
        }
    }

    /// The tokens of a page, read by a browser's parser.
    #[derive(Default)]
    struct Seen(RefCell<Vec<Tag>>);

    /// An element's name, and names and values of its attributes.
    type Tag = (String, Vec<(String, String)>);

    impl TokenSink for Seen {
        type Handle = ();

        fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
            if let Token::TagToken(tag) = token {
                let attributes = tag.attrs.iter().map(|it| (it.name.local.to_string(), it.value.to_string()));
                self.0.borrow_mut().push((tag.name.to_string(), attributes.collect()));
            }
            TokenSinkResult::Continue
        }
    }

    fn seen(html: &str) -> Vec<Tag> {
        let tokenizer = Tokenizer::new(Seen::default(), TokenizerOpts::default());
        let input = BufferQueue::default();
        input.push_back(StrTendril::from(html));
        let _ = tokenizer.feed(&input);
        tokenizer.end();
        tokenizer.sink.0.take()
    }

    /// No element is left that is read by rules of its own, so the tokens are what every parser sees; and no element or
    /// attribute is left that runs, hides or sends anything.
    #[track_caller]
    fn assert_harmless(evil: &str) {
        let out = html(evil);
        for (element, attributes) in seen(&out) {
            assert!(KEPT.contains(element.as_str()), "{evil} became {out}");
            for (name, value) in attributes {
                let known = [
                    "align",
                    "alt",
                    "aria-label",
                    "checked",
                    "class",
                    "disabled",
                    "height",
                    "href",
                    "id",
                    "lang",
                    "loading",
                    "open",
                    "referrerpolicy",
                    "rel",
                    "src",
                    "title",
                    "type",
                    "width",
                ];
                let value = value.to_ascii_lowercase().replace(|letter: char| letter.is_whitespace(), "");
                let runs = ["javascript:", "data:", "vbscript:"].iter().any(|scheme| value.starts_with(scheme));
                let ours = ["prose", "muted", "odd-char"].contains(&value.as_str()) || value.len() == 1;
                let borrowed = name == "class" && !ours || name == "type" && value != "checkbox";
                assert!(known.contains(&name.as_str()) && !runs && !borrowed, "{evil} became {out}");
            }
        }
    }

    #[test]
    fn markup_that_parsers_read_in_two_ways_does_no_harm_and_leaves_the_rest_of_the_document() {
        for evil in [
            "<svg><style><img src=x onerror=alert(1)></style></svg>",
            "<svg><style><img src=x onerror=alert(1)>",
            "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
            "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
            "<math><mtext><table><mglyph><style><math><img src onerror=alert(1)></style></math>",
            "<math><annotation-xml encoding=\"text/html\"><style><img src=x onerror=alert(1)></style></annotation-xml>",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "<noscript><style></noscript><img src=x onerror=alert(1)></style>",
            "<!--><img src=x onerror=alert(1)>-->",
            "<!-- --!><img src=x onerror=alert(1)> -->",
            "<svg><![CDATA[><image xlink:href=\"]]><img src=x onerror=alert(1)//\"></svg>",
            "<![CDATA[<img src=x onerror=alert(1)>]]>",
            "<select><template><img src=x onerror=alert(1)></template></select>",
            "<textarea></textarea><img src=x onerror=alert(1)></textarea>",
            "<title><img title=\"</title><img src=x onerror=alert(1)>\"></title>",
            "<xmp><p title=\"</xmp><img src=x onerror=alert(1)>\"></xmp>",
            "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
            "<svg><foreignObject><iframe srcdoc=\"<script>alert(1)</script>\"></iframe></foreignObject></svg>",
            "<scr<script>ipt>alert(1)</scr</script>ipt>",
            "<<svg>script>alert(1)</<svg>script>",
            "<svg><a xlink:href=\"javascript:alert(1)\"><text>x</text></a></svg>",
            "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
            "<table><svg><style><td><img src=x onerror=alert(1)></style></svg></table>",
            "<a href=\"javascript&colon;alert(1)\">x</a><svg>",
            "<plaintext><img src=x onerror=alert(1)>",
        ] {
            assert_harmless(evil);
            assert_harmless(&format!("# Title\n\n{evil}\n\n**end**\n"));
            let around = html(&format!("# Title\n\n<b>kept</b>\n\n{evil}\n"));
            assert!(around.contains("<h1") && around.contains("<b>kept</b>"), "{evil} became {around}");
        }
    }

    #[test]
    fn scripts_and_styles_go_with_their_content_and_unknown_tags_alone() {
        let out = html(
            "# Title\n\n<p align=\"center\"><img src=\"a.png\"></p>\n\n<svg width=1><title>Logo</title><path d=\"M0 0\"/></svg>\n\n\
             <style>p > a { color: red }</style>\n\n<script>\nalert(1 < 2)\n</script>\n\n\
             <details><summary>More</summary>\n\n- <kbd>a</kbd> <blink>b</blink>\n\n</details>\n",
        );
        for part in ["<p align=\"center\">", "<summary>More</summary>", "<kbd>a</kbd> b", "Logo", "<img"] {
            assert!(out.contains(part), "{part} in {out}");
        }
        for gone in ["alert", "color", "&lt;", "svg", "path", "blink"] {
            assert!(!out.contains(gone), "{gone} in {out}");
        }
        let drawing = format!("<svg>{}</svg>\n\n<b>after</b>", "<path d=\"M0\"/><g>".repeat(3_000));
        let out = html(&drawing);
        assert!(out.contains("<b>after</b>") && !out.contains("&lt;"), "a large drawing hides nothing else");
    }

    #[test]
    fn ids_of_a_document_cannot_take_the_place_of_the_pages() {
        let out = html("# main\n\n<h2 id=\"main\">x</h2>");
        assert!(!out.contains("id=\"main\""), "{out}");
        assert!(out.contains("id=\"user-content-main\""), "{out}");
    }

    #[test]
    fn tables_task_lists_and_code_look_as_people_expect() {
        let out = html("| a |\n|---|\n| b |\n\n- [x] done\n- [ ] open\n\n```rust\nfn a() {}\n```\n~~gone~~");
        for part in ["<table>", "<td>b</td>", "type=\"checkbox\"", "<span class=\"k\">fn </span>", "<del>gone</del>"] {
            assert!(out.contains(part), "{part} in {out}");
        }
    }

    #[test]
    fn a_plain_text_readme_is_shown_as_it_is() {
        let out = render(b"README", b"a <b>\n  c\x1b[0m", &base());
        assert_eq!(out, "<div class=\"prose\"><pre>a &lt;b&gt;\n  c\u{fffd}[0m\n</pre></div>");
    }
}
