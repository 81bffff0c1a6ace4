//! Two-factor authentication: set-up, recovery codes, turning it off.

use super::{ask, asked, sudo, unconfirmed};
use crate::App;
use crate::ask::{Harm, Question, lines};
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::problem::{Problem, sentence};
use crate::respond;
use abide_core::InputError as _;
use abide_forge::accounts::totp::{self, Enrolment, TotpError};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

const TITLE: &str = "Two-factor authentication";
const PATH: &str = "/settings/security/two-factor";

#[derive(Template)]
#[template(path = "settings/two_factor.html")]
struct TwoFactorPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    stage: Stage,
}

/// Progress of the set-up.
enum Stage {
    Off,
    Pending(Enrolment),
    On { codes_left: i64 },
}

#[derive(Template)]
#[template(path = "settings/recovery_codes.html")]
struct CodesPage {
    frame: Frame,
    section: &'static str,
    codes: Vec<String>,
}

fn new_codes_question() -> Question {
    Question {
        title: "Generate new recovery codes?".into(),
        consequences: lines([
            "You get ten new codes, shown once. Each code signs you in once without your phone.",
            "Your current codes stop working at once.",
        ]),
        action: format!("{PATH}/codes"),
        button: "Generate new codes".into(),
        back: PATH.into(),
        password: true,
        harm: Harm::None,
        ..Question::default()
    }
}

fn off_question() -> Question {
    Question {
        title: "Turn off two-factor authentication?".into(),
        consequences: lines([
            "You sign in with your password alone. Anyone who learns it can use your account.",
            "The entry in your app and your recovery codes stop working. Setting it up again creates new ones.",
        ]),
        action: format!("{PATH}/off"),
        button: "Turn off".into(),
        back: PATH.into(),
        password: true,
        ..Question::default()
    }
}

/// `GET /settings/security/two-factor`
pub(super) async fn show(State(app): State<App>, member: Member) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &member, Errors::none()).await?))
}

async fn page(app: &App, member: &Member, errors: Errors) -> Result<TwoFactorPage, Problem> {
    let stage = match totp::is_on(&app.forge, &member.viewer).await? {
        true => Stage::On { codes_left: totp::recovery_codes_left(&app.forge, &member.viewer).await? },
        false => totp::pending(&app.forge, &member.viewer).await?.map_or(Stage::Off, Stage::Pending),
    };
    Ok(TwoFactorPage { frame: Frame::new(app, &member.visitor, TITLE), section: "security", errors, stage })
}

/// `POST /settings/security/two-factor`
pub(super) async fn begin(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    if let Some(ask) = sudo::ask(&app, &member, &form, "security", PATH).await? {
        return Ok(ask);
    }
    match totp::begin(&app.forge, &member.viewer).await {
        Ok(_) | Err(TotpError::On) => Ok(respond::see_other(PATH)),
        Err(error) => Err(problem(error)),
    }
}

/// `POST /settings/security/two-factor/confirm`
pub(super) async fn confirm(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    match totp::confirm(&app.forge, &member.viewer, &form.text("code")).await {
        Ok(codes) => Ok(codes_page(&app, &member, codes)),
        Err(error @ TotpError::Code) => {
            let errors = Errors::of(&["code"], &error);
            Ok(respond::form_again(&page(&app, &member, errors).await?))
        }
        Err(TotpError::On | TotpError::Off) => Ok(respond::see_other(PATH)),
        Err(error) => Err(problem(error)),
    }
}

fn codes_page(app: &App, member: &Member, codes: Vec<String>) -> Response {
    let frame = Frame::new(app, &member.visitor, "Recovery codes");
    respond::secret(&CodesPage { frame, section: "security", codes })
}

/// `GET /settings/security/two-factor/codes`
pub(super) async fn ask_codes(State(app): State<App>, member: Member) -> Response {
    ask(&app, &member, "security", new_codes_question())
}

/// `POST /settings/security/two-factor/codes`
pub(super) async fn new_codes(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    match totp::new_recovery_codes(&app.forge, &member.viewer, form.text("current_password")).await {
        Ok(codes) => Ok(codes_page(&app, &member, codes)),
        Err(error) => refused(&app, &member, error, new_codes_question()),
    }
}

/// `GET /settings/security/two-factor/off`
pub(super) async fn ask_off(State(app): State<App>, member: Member) -> Response {
    ask(&app, &member, "security", off_question())
}

/// `POST /settings/security/two-factor/off`
pub(super) async fn off(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    match totp::disable(&app.forge, &member.viewer, form.text("current_password")).await {
        Ok(()) => Ok(respond::see_other("/settings/security?done=two-factor-off")),
        Err(error) => refused(&app, &member, error, off_question()),
    }
}

fn refused(app: &App, member: &Member, error: TotpError, question: Question) -> Result<Response, Problem> {
    match error {
        TotpError::Confirm(error) => Ok(asked(app, member, "security", question, unconfirmed(error)?)),
        TotpError::Off | TotpError::On | TotpError::Code => Ok(respond::see_other(PATH)),
        error => Err(problem(error)),
    }
}

fn problem(error: TotpError) -> Problem {
    match error {
        TotpError::Fault(fault) => fault.into(),
        other => Problem::new(StatusCode::CONFLICT, sentence(&other.with_field())),
    }
}
