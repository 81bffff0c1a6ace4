//! A browser without a screen: it keeps cookies, and sends forms as they stand on a page.

use abide_testkit::Server;
use abide_testkit::http::{Request, Response};
use std::cell::RefCell;
use std::collections::BTreeMap;

pub struct Browser<'a> {
    server: &'a Server,
    agent: String,
    cookies: RefCell<BTreeMap<String, String>>,
}

impl<'a> Browser<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self::called(server, "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    }

    /// A browser with another name for itself.
    pub fn called(server: &'a Server, agent: &str) -> Self {
        Self { server, agent: agent.to_owned(), cookies: RefCell::default() }
    }

    /// Value of its `Cookie` header.
    pub fn cookies(&self) -> String {
        let pairs = self.cookies.borrow();
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    /// One of its cookies.
    pub fn cookie(&self, name: &str) -> Option<String> {
        self.cookies.borrow().get(name).cloned()
    }

    /// Puts a cookie back, as someone who has kept a copy could.
    pub fn set_cookie(&self, name: &str, value: &str) {
        self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned());
    }

    /// A request with its cookies, not sent yet.
    pub fn request(&self, method: &str, path: &str) -> Request {
        let request = Request::new(method, path).header("User-Agent", &self.agent);
        match self.cookies() {
            none if none.is_empty() => request,
            cookies => request.header("Cookie", &cookies),
        }
    }

    /// Sends a request and keeps the cookies of its answer.
    #[track_caller]
    pub fn send(&self, request: &Request) -> Response {
        let response = request.send(self.server.http_addr());
        let set = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        for (_, cookie) in set {
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie has a name and a value");
            match cookie.contains("Max-Age=0") {
                true => self.cookies.borrow_mut().remove(name),
                false => self.cookies.borrow_mut().insert(name.to_owned(), value.to_owned()),
            };
        }
        response
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.send(&self.request("GET", path))
    }

    /// A page that must be there.
    #[track_caller]
    pub fn page(&self, path: &str) -> String {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.text()
    }

    /// Sends fields as a form does.
    #[track_caller]
    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.send(&form_request(self.request("POST", path), fields))
    }

    /// Fills in the form of a page that is sent to `action`, and sends it with everything hidden in it.
    #[track_caller]
    pub fn submit(&self, page: &str, action: &str, fields: &[(&str, &str)]) -> Response {
        self.submit_in(&self.page(page), action, "", fields)
    }

    /// The same in a page that was fetched before, with the first form that has a text in it.
    #[track_caller]
    pub fn submit_in(&self, html: &str, action: &str, with: &str, fields: &[(&str, &str)]) -> Response {
        let start = format!("action=\"{action}\"");
        let mut forms = html.split("<form").filter(|form| form.contains(&start) && form.contains(with));
        let form = forms.next().unwrap_or_else(|| panic!("no form for {action} with {with:?} in\n{html}"));
        let form = form.split("</form>").next().unwrap_or_default();
        let mut all = hidden(form);
        assert!(all.iter().any(|(name, _)| name == "_token"), "a form without a token: {form}");
        all.retain(|(name, _)| fields.iter().all(|(given, _)| given != name));
        all.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let fields: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.post(action, &fields)
    }

    /// Follows the link of a page to the question that is asked before `action`, and returns the question. `with` is a
    /// text of the link, for pages with several. The page itself has no form that does it at once; the question tells
    /// consequences and leads back to the page.
    #[track_caller]
    pub fn question(&self, page: &str, action: &str, with: &str) -> String {
        let html = self.page(page);
        assert!(!html.contains(&format!("action=\"{action}\"")), "{page} does {action} without a question");
        let mut links = html.split("<a ").map(|link| link.split("</a>").next().unwrap_or_default());
        let start = [format!("href=\"{action}\""), format!("href=\"{action}?")];
        let link = links.find(|link| start.iter().any(|start| link.contains(start)) && link.contains(with));
        let link = link.unwrap_or_else(|| panic!("no link to {action} with {with:?} on {page}\n{html}"));
        let to = attribute(link, "href").expect("a link leads somewhere");
        let question = self.page(&to);
        let reported =
            question.split("id=\"consequences\"").nth(1).unwrap_or_else(|| panic!("nothing told\n{question}"));
        assert!(reported.split("</ul>").next().is_some_and(|reported| reported.contains("<li>")), "{question}");
        let cancel = question.split("\">Cancel</a>").next().and_then(|before| before.rsplit("href=\"").next());
        let path = |address: &str| address.split(['?', '#']).next().unwrap_or_default().to_owned();
        assert_eq!(cancel.map(path), Some(path(page)), "{question}");
        question
    }

    /// Follows the link to a question and answers it.
    #[track_caller]
    pub fn confirm(&self, page: &str, action: &str, fields: &[(&str, &str)]) -> Response {
        self.submit_in(&self.question(page, action, ""), action, "", fields)
    }

    /// The token that its forms carry at this moment.
    #[track_caller]
    pub fn token(&self, page: &str) -> String {
        let html = self.page(page);
        let found = hidden(&html).into_iter().find(|(name, _)| name == "_token");
        found.unwrap_or_else(|| panic!("no form on {page}")).1
    }

    /// Logs in through the page.
    #[track_caller]
    pub fn log_in(&self, name: &str, password: &str) {
        let answer = self.submit("/login", "/login", &[("login", name), ("password", password)]);
        assert_eq!(answer.status, 303, "{}", answer.text());
    }

    /// Whether someone is logged in.
    #[track_caller]
    pub fn is_in(&self) -> bool {
        self.get("/settings/profile").status == 200
    }
}

/// A request with fields in its body.
pub fn form_request(request: Request, fields: &[(&str, &str)]) -> Request {
    let body: Vec<_> = fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    request.header("Content-Type", "application/x-www-form-urlencoded").body(body.join("&"))
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Names and values of hidden fields.
fn hidden(html: &str) -> Vec<(String, String)> {
    let inputs = html.split("<input type=\"hidden\" ").skip(1);
    inputs.filter_map(|input| Some((attribute(input, "name")?, attribute(input, "value")?))).collect()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split('>').next()?.split(&format!("{name}=\"")).nth(1)?.split('"').next()?;
    let decoded = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    Some(decoded.iter().fold(value.to_owned(), |value, (code, letter)| value.replace(code, letter)))
}

/// Where an answer sends the browser.
#[track_caller]
pub fn location(response: &Response) -> &str {
    assert!(matches!(response.status, 301 | 303 | 307), "{} {}", response.status, response.text());
    response.header("location").expect("a redirect leads somewhere")
}

/// The text of the first element with this class.
#[track_caller]
pub fn text_of(html: &str, class: &str) -> String {
    let mark = format!("class=\"{class}\"");
    let rest = html.split(&mark).nth(1).unwrap_or_else(|| panic!("nothing of class {class} in\n{html}"));
    let text = rest.split_once('>').map_or("", |(_, text)| text);
    text.split('<').next().unwrap_or_default().to_owned()
}

/// A page without the tokens of its forms, which are masked anew in every answer.
pub fn without_tokens(html: &str) -> String {
    let mut parts = html.split("name=\"_token\" value=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |page, part| page + "TOKEN" + part.split_once('"').map_or("", |(_, rest)| rest))
}
