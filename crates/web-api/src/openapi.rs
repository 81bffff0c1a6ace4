//! The OpenAPI 3.1 document, generated from the route table and the types of requests and responses.

use super::about::{Answer, Body, Content, Takes};
use super::error;
use super::routes::routes;
use super::scoped::{Access, Declared};
use abide_core::scope::Scope;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

pub fn document() -> &'static Value {
    &DOCUMENT
}

/// Serves the document.
pub(super) async fn show() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document().to_string())
}

fn build() -> Value {
    let routes = routes();
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for declared in routes.declared() {
        let path = template(declared.route.path);
        let operations = paths.entry(path).or_insert_with(|| json!({}));
        operations[declared.route.method.to_lowercase()] = operation(declared);
        collect(declared, &mut schemas);
    }
    add(Body::of::<error::Body<'static>>(), &mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Abide",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The REST API of Abide, a git forge. It is compatible with GitHub's REST API where features \
                overlap, so GitHub clients work with this base URL.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/api/v3" }],
        "security": [{}, { "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "An access token, `abide_pat_…`, or a nostr key: `Authorization: Nostr` with a signed event for this one request (NIP-98)." },
            },
        },
    })
}

/// Path in OpenAPI's syntax: `{*tail}`, which matches slashes, becomes `{tail}`.
fn template(path: &str) -> String {
    if path.is_empty() { "/".into() } else { path.replace("{*", "{") }
}

/// OpenAPI operation of one route.
fn operation(declared: &Declared) -> Value {
    let (route, about) = (&declared.route, &declared.about);
    let mut responses = Map::new();
    for answer in &about.answers {
        let response = responses.entry(answer.status.to_string()).or_insert_with(|| json!({}));
        response["description"] = answer.about.into();
        add_content(response, answer);
    }
    if route.method == "GET" {
        responses
            .insert("304".into(), json!({ "description": "Not modified: the ETag in `If-None-Match` is current." }));
    }
    for (range, about) in [("4XX", "Refused; the message says why."), ("5XX", "Internal server error.")] {
        let schema = json!({ "schema": { "$ref": "#/components/schemas/Error" } });
        responses.insert(range.into(), json!({ "description": about, "content": { "application/json": schema } }));
    }
    let mut operation = json!({
        "tags": [declared.area],
        "summary": about.summary,
        "description": access_in_words(route.access),
        "operationId": operation_id(declared),
        "parameters": parameters(declared),
        "responses": responses,
    });
    if let Some(body) = about.body.body() {
        let schema = json!({ "application/json": { "schema": reference(body) } });
        let required = matches!(about.body, Takes::Always(_));
        operation["requestBody"] = json!({ "required": required, "content": schema });
    }
    if let Access::Logged(_) | Access::Both(..) = route.access {
        operation["security"] = json!([{ "token": [] }]);
    }
    operation
}

fn add_content(response: &mut Value, answer: &Answer) {
    let schema = match answer.content {
        Content::Nothing => return,
        Content::One(body) => reference(body),
        Content::Many(body) => json!({ "type": "array", "items": reference(body) }),
        Content::OneOrMany(body) => {
            json!({ "oneOf": [reference(body), { "type": "array", "items": reference(body) }] })
        }
        Content::Json => json!({ "type": "object" }),
        Content::Media(types) => {
            for name in types {
                response["content"][*name] = json!({});
            }
            return;
        }
    };
    response["content"]["application/json"] = json!({ "schema": schema });
}

fn reference(body: Body) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", (body.name)()) })
}

/// Adds a type and the types it refers to.
fn add(body: Body, schemas: &mut Map<String, Value>) {
    let mut parts = vec![((body.name)().into_owned(), (body.schema)())];
    (body.parts)(&mut parts);
    for (name, schema) in parts {
        schemas.insert(name, serde_json::to_value(schema).expect("a schema is made of JSON"));
    }
}

fn collect(declared: &Declared, schemas: &mut Map<String, Value>) {
    let sent = declared.about.answers.iter().filter_map(|answer| match answer.content {
        Content::One(body) | Content::Many(body) | Content::OneOrMany(body) => Some(body),
        Content::Nothing | Content::Json | Content::Media(_) => None,
    });
    for body in sent.chain(declared.about.body.body()) {
        add(body, schemas);
    }
}

/// `get-repos-owner-repo`: stable, and unique because routes are.
fn operation_id(declared: &Declared) -> String {
    let words = declared.route.path.split(['/', '{', '}', '*', '.']).filter(|word| !word.is_empty());
    let slash = declared.route.path.ends_with('/').then_some("slash");
    let method = declared.route.method.to_lowercase();
    std::iter::once(method.as_str()).chain(words).chain(slash).collect::<Vec<_>>().join("-")
}

fn parameters(declared: &Declared) -> Value {
    let variables = declared.route.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let in_path = variables.map(|variable| {
        let name = variable.trim_start_matches('*');
        let kind = if ["id", "number"].contains(&name) { "integer" } else { "string" };
        json!({ "name": name, "in": "path", "required": true, "description": variable_in_words(name), "schema": { "type": kind } })
    });
    let in_query = declared.about.query.iter().map(|query| {
        json!({ "name": query.name, "in": "query", "description": query.about, "schema": { "type": query.kind } })
    });
    in_path.chain(in_query).collect()
}

fn variable_in_words(name: &str) -> &'static str {
    match name {
        "owner" => "Owner of the repository.",
        "repo" => "Name of the repository.",
        "user" => "Name of the account.",
        "target" => "Name of the other account.",
        "id" | "delivery" => "Numeric id.",
        "hook" => "Id of the webhook.",
        "number" => "Number in the repository.",
        "name" => "Name of the label.",
        "path" | "dir" => "Path in the repository; slashes need no encoding.",
        "branch" => "Branch; slashes need no encoding.",
        "ref" => "Ref; slashes need no encoding.",
        "npub" => "Nostr key (npub1…).",
        "identifier" => "Identifier of the repository (its d tag), URL-encoded.",
        "sha" => "Object id, or a branch or tag.",
        "basehead" => "Two branches, tags or commits: base...head.",
        _ => "",
    }
}

fn access_in_words(access: Access) -> String {
    let scope = |scope: Scope| format!("the `{scope}` scope");
    match access {
        Access::Everyone => "Public.".into(),
        Access::Uncounted => "Public; does not count against the rate limit.".into(),
        Access::Open(needed) => format!("Public; a token needs {}.", scope(needed)),
        Access::Logged(needed) => format!("Requires a token with {}.", scope(needed)),
        Access::Both(one, other) => format!("Requires a token with {} and {}.", scope(one), scope(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn operations() -> Vec<(String, String, &'static Value)> {
        let paths = document()["paths"].as_object().unwrap();
        let each = |(path, methods): (&String, &'static Value)| {
            let path = path.clone();
            methods
                .as_object()
                .unwrap()
                .iter()
                .map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
        };
        paths.iter().flat_map(each).collect()
    }

    #[test]
    fn every_route_is_described_and_nothing_else_is() {
        let described: BTreeSet<_> = operations().into_iter().map(|(method, path, _)| (method, path)).collect();
        let routed: BTreeSet<_> =
            crate::api_routes().iter().map(|route| (route.method.to_owned(), template(route.path))).collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn every_operation_says_what_it_does_takes_and_gives() {
        let mut ids = BTreeSet::new();
        for (method, path, operation) in operations() {
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
            assert!(ids.insert(operation["operationId"].to_string()), "{method} {path} is there twice");
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path} never works");
            let named: BTreeSet<_> = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
                .collect();
            let variables: BTreeSet<_> = path
                .split('/')
                .filter_map(|segment| Some(segment.strip_prefix('{')?.strip_suffix('}')?.to_owned()))
                .collect();
            assert_eq!(named, variables, "{method} {path}");
            for parameter in operation["parameters"].as_array().unwrap() {
                assert!(parameter["description"].as_str().is_some_and(|text| !text.is_empty()), "{parameter}");
            }
        }
    }

    #[test]
    fn what_can_have_a_body_says_whether_it_does_and_nothing_else_has_one() {
        for declared in routes().declared() {
            let could = matches!(declared.route.method, "POST" | "PUT" | "PATCH");
            let said = !matches!(declared.about.body, Takes::Unsaid);
            assert_eq!(said, could, "{:?}", declared.route);
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references(value: &Value, found: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                _ => (),
            }
        }
        let mut found = BTreeSet::new();
        references(document(), &mut found);
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document().pointer(pointer).is_some(), "{reference}");
        }
    }

    /// The snapshot makes changes to the API visible in a review. `ABIDE_WRITE_SNAPSHOTS=1` rewrites it.
    #[test]
    fn the_document_is_the_one_that_was_reviewed() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        if std::env::var_os("ABIDE_WRITE_SNAPSHOTS").is_some() {
            std::fs::write(file, format!("{}\n", serde_json::to_string_pretty(document()).unwrap())).unwrap();
        }
        // Compared as JSON values: the order of fields depends on features that other crates of the build enable in
        // serde_json.
        let reviewed: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert!(reviewed == *document(), "the API has changed: look at it, then run with ABIDE_WRITE_SNAPSHOTS=1");
    }
}
