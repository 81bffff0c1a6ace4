//! SSH keys.

use super::{ask, sudo};
use crate::App;
use crate::ask::{Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use abide_forge::accounts::SshKey;
use abide_forge::accounts::ssh_keys::{self, AddKeyError};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "settings/keys.html")]
struct KeysPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    title: String,
    key: String,
    keys: Vec<SshKey>,
}

/// `GET /settings/keys`
pub(super) async fn show(State(app): State<App>, member: Member) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &member, Errors::none(), String::new(), String::new()).await?))
}

async fn page(app: &App, member: &Member, errors: Errors, title: String, key: String) -> Result<KeysPage, Problem> {
    let most = app.forge.settings().accounts.ssh_keys;
    let (keys, _) = ssh_keys::list(&app.forge, member.viewer.user.id, most, 0).await?;
    let frame = Frame::new(app, &member.visitor, "SSH keys");
    Ok(KeysPage { frame, section: "keys", errors, title, key, keys })
}

/// `POST /settings/keys`
pub(super) async fn add(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let (title, key) = (form.text("title"), form.text("key"));
    // A private key must not be sent back in a page. It can lack its first line, or be in the wrong field.
    let title = if looks_private(&title) { String::new() } else { title };
    if looks_private(&key) || title.is_empty() && looks_private(&form.text("title")) {
        let errors = Errors::at("key", PRIVATE);
        return Ok(respond::form_again(&page(&app, &member, errors, title, String::new()).await?));
    }
    if !looks_public(&key) {
        let errors = Errors::of(&["title", "key"], &AddKeyError::Malformed);
        return Ok(respond::form_again(&page(&app, &member, errors, title, String::new()).await?));
    }
    if let Some(ask) = sudo::ask(&app, &member, &form, "keys", "/settings/keys").await? {
        return Ok(ask);
    }
    match ssh_keys::add(&app.forge, &member.viewer.caller, member.viewer.user.id, &title, &key).await {
        Ok(_) => Ok(respond::see_other("/settings/keys?done=added")),
        Err(AddKeyError::Fault(fault)) => Err(fault.into()),
        Err(error) => {
            let errors = Errors::of(&["title", "key"], &error);
            Ok(respond::form_again(&page(&app, &member, errors, title, key).await?))
        }
    }
}

const PRIVATE: &str = "this is a private key, which must stay secret: it was not stored, but do not use it any \
    more. Create a new key and paste the content of its .pub file";

/// Whether a text holds a private key in any of the forms that programs write. The last two are the first bytes of an
/// OpenSSH private key in base64 and of a PKCS#8 one.
fn looks_private(text: &str) -> bool {
    let marks = [
        "PRIVATE KEY",
        "PuTTY-User-Key-File",
        "Private-Lines",
        "AGE-SECRET-KEY",
        "nsec1",
        "b3BlbnNzaC1rZXkt",
        "MC4CAQAwBQYDK2Vw",
    ];
    marks.iter().any(|mark| text.contains(mark))
}

/// Whether a text begins with the name of a public key's algorithm. Any other text is not shown again.
fn looks_public(text: &str) -> bool {
    let algorithm = text.split_whitespace().next().unwrap_or_default();
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"].iter().any(|start| algorithm.starts_with(start))
}

/// `GET /settings/keys/remove?id=…`
pub(super) async fn ask_remove(
    State(app): State<App>,
    member: Member,
    page_path: PagePath,
) -> Result<Response, Problem> {
    let id = page_path.id()?;
    let key = ssh_keys::get(&app.forge, member.viewer.user.id, id).await?.ok_or_else(Problem::not_found)?;
    let title = if key.title.is_empty() { "Untitled" } else { &key.title };
    let question = Question {
        title: "Delete this SSH key?".into(),
        about: format!("{title} ({})", key.fingerprint),
        consequences: lines([
            "Clones, fetches and pushes over SSH that use this key stop working at once.",
            "You can add the key again.",
        ]),
        action: "/settings/keys/remove".into(),
        button: "Delete SSH key".into(),
        back: "/settings/keys".into(),
        hidden: vec![("id", id.to_string())],
        ..Question::default()
    };
    Ok(ask(&app, &member, "keys", question))
}

/// `POST /settings/keys/remove`
pub(super) async fn remove(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    match ssh_keys::remove(&app.forge, &member.viewer.caller, member.viewer.user.id, form.id()?).await? {
        true => Ok(respond::see_other("/settings/keys?done=removed")),
        false => Err(Problem::not_found()),
    }
}
