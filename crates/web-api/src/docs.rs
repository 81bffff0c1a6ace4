//! Content of the page `/api/docs`, taken from the OpenAPI document.

use super::openapi::document;
use serde_json::Value;

/// An area of the API.
#[derive(Debug, Clone)]
pub struct Section {
    pub title: String,
    pub operations: Vec<Operation>,
}

/// An operation.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Operation id; unique, so the page links to it.
    pub id: String,
    pub method: String,
    pub path: String,
    pub summary: String,
    pub access: String,
    /// Name, location (path or query) and description.
    pub parameters: Vec<[String; 3]>,
    /// Type of the request body.
    pub takes: Option<String>,
    /// Status, description, and type of the response body.
    pub answers: Vec<[String; 3]>,
}

/// The whole API, by area and path.
pub fn sections() -> Vec<Section> {
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
        path: format!("{}{path}", abide_web::API),
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

/// Name of a schema, or of the items of a list.
fn type_name(schema: &Value) -> Option<String> {
    let named = |one: &Value| one["$ref"].as_str().and_then(|name| name.rsplit('/').next()).map(str::to_owned);
    named(schema)
        .or_else(|| named(&schema["items"]).map(|name| format!("list of {name}")))
        .or_else(|| named(&schema["oneOf"][0]).map(|name| format!("{name} or list of {name}")))
        .or_else(|| schema["type"].as_str().map(str::to_owned))
}

/// Splits a text at backticks into text and code.
pub fn pieces(text: &str) -> Vec<(bool, &str)> {
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| (at % 2 == 1, part)).filter(|(_, part)| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_shown() {
        let shown: Vec<_> = sections().into_iter().flat_map(|section| section.operations).collect();
        for route in crate::api_routes() {
            let path = if route.path.is_empty() { "/".into() } else { route.path.replace("{*", "{") };
            let wanted = format!("{}{path}", abide_web::API);
            let found = shown.iter().find(|one| one.method == route.method && one.path == wanted);
            let operation = found.unwrap_or_else(|| panic!("{route:?} is not shown"));
            assert!(!operation.summary.is_empty() && !operation.answers.is_empty(), "{operation:?}");
        }
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        assert_eq!(
            pieces("needs `repo`, or `user`."),
            [(false, "needs "), (true, "repo"), (false, ", or "), (true, "user"), (false, "."),]
        );
    }
}
