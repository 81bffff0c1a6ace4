//! The API for people: the OpenAPI document as a page that needs no script.

use super::openapi::document;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::fmt::Write as _;

/// A part of the API, as the page shows it.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// What it is about.
    pub title: String,
    /// What can be done there.
    pub operations: Vec<Operation>,
}

/// One thing that can be done.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// What it is called in the document; unique, so it can be linked to.
    pub id: String,
    pub method: String,
    /// The whole path.
    pub path: String,
    pub summary: String,
    /// Who may do it.
    pub access: String,
    /// Name, where it stands, and what it is.
    pub parameters: Vec<[String; 3]>,
    /// The name of the type it takes.
    pub takes: Option<String>,
    /// Status, what it means, and the name of the type it gives.
    pub answers: Vec<[String; 3]>,
}

/// The whole API, by area and path.
pub(crate) fn sections() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (path, methods) in document()["paths"].as_object().into_iter().flatten() {
        for (method, described) in methods.as_object().into_iter().flatten() {
            let title = text(&described["tags"][0]);
            let operation = operation(path, method, described);
            match sections.iter_mut().find(|section| section.title == title) {
                Some(section) => section.operations.push(operation),
                None => sections.push(Section { title, operations: vec![operation] }),
            }
        }
    }
    sections
}

fn operation(path: &str, method: &str, described: &Value) -> Operation {
    let parameter = |one: &Value| [text(&one["name"]), text(&one["in"]), text(&one["description"])];
    let answer = |(status, one): (&String, &Value)| {
        let content = &one["content"];
        let json = type_name(&content["application/json"]["schema"]);
        let others = content.as_object().into_iter().flatten().map(|(media, _)| media.as_str());
        let others = others.filter(|media| *media != "application/json").map(str::to_owned);
        let gives = json.into_iter().chain(others).collect::<Vec<_>>().join(", ");
        [status.clone(), text(&one["description"]), gives]
    };
    Operation {
        id: text(&described["operationId"]),
        method: method.to_uppercase(),
        path: format!("{}{path}", crate::API),
        summary: text(&described["summary"]),
        access: text(&described["description"]),
        parameters: described["parameters"].as_array().into_iter().flatten().map(parameter).collect(),
        takes: type_name(&described["requestBody"]["content"]["application/json"]["schema"]),
        answers: described["responses"].as_object().into_iter().flatten().map(answer).collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// How a schema is called: its own name, or that of what it is a list of.
fn type_name(schema: &Value) -> Option<String> {
    let named = |one: &Value| one["$ref"].as_str().and_then(|name| name.rsplit('/').next()).map(str::to_owned);
    named(schema)
        .or_else(|| named(&schema["items"]).map(|name| format!("list of {name}")))
        .or_else(|| named(&schema["oneOf"][0]).map(|name| format!("{name} or a list of them")))
        .or_else(|| schema["type"].as_str().map(str::to_owned))
}

/// `GET /api/docs`
pub(crate) async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (headers, render(&sections())).into_response()
}

fn render(sections: &[Section]) -> String {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>API · Abide</title>\
         <meta name=\"viewport\" content=\"width=device-width\"></head>\n<body>\n<main>\n<h1>The REST API</h1>\n\
         <p>Shapes and status codes are GitHub's where GitHub has the thing. The same as \
         <a href=\"/api/v3/openapi.json\">OpenAPI 3.1</a>.</p>\n",
    );
    for section in sections {
        write!(html, "<section>\n<h2>{}</h2>\n", escaped(&section.title)).expect(INFALLIBLE);
        section.operations.iter().for_each(|operation| render_operation(&mut html, operation));
        html.push_str("</section>\n");
    }
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

const INFALLIBLE: &str = "writing to a string does not fail";

fn render_operation(html: &mut String, operation: &Operation) {
    let Operation { id, method, path, summary, access, .. } = operation;
    write!(
        html,
        "<article id=\"{id}\">\n<h3><a href=\"#{id}\">{}</a></h3>\n<p><code>{method} {}</code></p>\n<p>{}</p>\n",
        escaped(summary),
        escaped(path),
        in_code(access),
    )
    .expect(INFALLIBLE);
    if let Some(body) = &operation.takes {
        writeln!(html, "<p>Takes <code>{}</code>.</p>", escaped(body)).expect(INFALLIBLE);
    }
    table(html, ["Parameter", "in", "what"], &operation.parameters);
    table(html, ["Answer", "what", "gives"], &operation.answers);
    html.push_str("</article>\n");
}

fn table(html: &mut String, head: [&str; 3], rows: &[[String; 3]]) {
    if rows.is_empty() {
        return;
    }
    html.push_str("<table>\n<thead><tr>");
    for title in head {
        write!(html, "<th scope=\"col\">{title}</th>").expect(INFALLIBLE);
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            write!(html, "<td>{}</td>", in_code(cell)).expect(INFALLIBLE);
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escaped, with what stands between backticks as code.
fn in_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, part)| if at % 2 == 1 { format!("<code>{}</code>", escaped(part)) } else { escaped(part) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_on_the_page() {
        let html = render(&sections());
        for route in crate::api_routes() {
            let path = if route.path.is_empty() { "/".into() } else { route.path.replace("{*", "{") };
            assert!(html.contains(&format!("<code>{} {}{path}</code>", route.method, crate::API)), "{route:?}");
        }
        assert!(!html.contains("<script") && !html.contains("style="));
    }
}
