//! Description of a route: the part of its declaration that becomes the OpenAPI document.

use std::borrow::Cow;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// A route's description. A route cannot be added without one.
#[derive(Clone)]
pub(super) struct About {
    pub summary: &'static str,
    pub query: Vec<Query>,
    pub body: Takes,
    pub answers: Vec<Answer>,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    /// Not declared: GET, HEAD and DELETE have no body.
    Unsaid,
    /// No body, although the method allows one.
    Nothing,
    /// Optional.
    Perhaps(Body),
    /// Required.
    Always(Body),
}

impl Takes {
    pub(super) fn body(self) -> Option<Body> {
        match self {
            Self::Unsaid | Self::Nothing => None,
            Self::Perhaps(body) | Self::Always(body) => Some(body),
        }
    }
}

/// A parameter of the query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: &'static str,
}

/// Schema of a request or response body.
#[derive(Clone, Copy)]
pub(super) struct Body {
    pub name: fn() -> Cow<'static, str>,
    pub schema: fn() -> RefOr<Schema>,
    pub parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Body {
    pub(super) fn of<T: ToSchema>() -> Self {
        Self { name: T::name, schema: T::schema, parts: T::schemas }
    }
}

/// A successful response of a route.
#[derive(Clone)]
pub(super) struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub content: Content,
}

/// Kind of a response's body.
#[derive(Clone)]
pub(super) enum Content {
    Nothing,
    One(Body),
    Many(Body),
    /// A value or a list of values.
    OneOrMany(Body),
    /// JSON without a fixed schema.
    Json,
    /// Bytes of these media types instead of JSON, if the `Accept` header names one.
    Media(&'static [&'static str]),
}

/// Starts a description.
pub(super) fn about(summary: &'static str) -> About {
    About { summary, query: Vec::new(), body: Takes::Unsaid, answers: Vec::new() }
}

impl About {
    /// Adds a text parameter of the query.
    pub(super) fn query(mut self, name: &'static str, about: &'static str) -> Self {
        self.query.push(Query { name, about, kind: "string" });
        self
    }

    fn number(mut self, name: &'static str, about: &'static str) -> Self {
        self.query.push(Query { name, about, kind: "integer" });
        self
    }

    fn per_page(self) -> Self {
        self.number("per_page", "Entries per page, 1 to 100.")
    }

    /// Adds `per_page` and `page`.
    pub(super) fn paged(self) -> Self {
        self.per_page().number("page", "Page number, starting at 1.")
    }

    /// Declares a required body.
    pub(super) fn takes<T: ToSchema>(self) -> Self {
        Self { body: Takes::Always(Body::of::<T>()), ..self }
    }

    /// Declares an optional body.
    pub(super) fn takes_perhaps<T: ToSchema>(self) -> Self {
        Self { body: Takes::Perhaps(Body::of::<T>()), ..self }
    }

    /// Declares that the route has no body, although its method allows one.
    pub(super) fn takes_nothing(self) -> Self {
        Self { body: Takes::Nothing, ..self }
    }

    fn answers(mut self, status: u16, about: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status, about, content });
        self
    }

    /// Responds 200 with a value.
    pub(super) fn gives<T: ToSchema>(self) -> Self {
        self.answers(200, "Success.", Content::One(Body::of::<T>()))
    }

    /// Responds with a value and another status.
    pub(super) fn gives_with<T: ToSchema>(self, status: u16, about: &'static str) -> Self {
        self.answers(status, about, Content::One(Body::of::<T>()))
    }

    /// Responds with one page of a list.
    pub(super) fn gives_page<T: ToSchema>(self) -> Self {
        self.paged().answers(
            200,
            "One page of the list; `Link` has the URLs of other pages.",
            Content::Many(Body::of::<T>()),
        )
    }

    /// Responds with a complete short list.
    pub(super) fn gives_list<T: ToSchema>(self) -> Self {
        self.answers(200, "The whole list.", Content::Many(Body::of::<T>()))
    }

    /// Responds with a page of a log, newest first.
    pub(super) fn gives_log<T: ToSchema>(self) -> Self {
        let paged = self.per_page().number("before", "Only entries older than the entry with this number.");
        paged.answers(200, "The newest entries; `Link` has the URL of older ones.", Content::Many(Body::of::<T>()))
    }

    /// Responds with a value or a list of values.
    pub(super) fn gives_one_or_many<T: ToSchema>(self) -> Self {
        self.answers(200, "A file, or the entries of a directory.", Content::OneOrMany(Body::of::<T>()))
    }

    /// JSON without a fixed schema.
    pub(super) fn gives_json(self) -> Self {
        self.answers(200, "Success.", Content::Json)
    }

    /// Adds media types that a client can accept instead of JSON.
    pub(super) fn or_media(self, media: &'static [&'static str]) -> Self {
        self.answers(200, "Success.", Content::Media(media))
    }

    /// Responds 301 with the new URL.
    pub(super) fn moves(self) -> Self {
        self.answers(301, "Moved permanently; `Location` has the new URL.", Content::Json)
    }

    /// Responds 204.
    pub(super) fn gives_nothing(self) -> Self {
        self.gives_empty(204)
    }

    /// Responds with another status and no body.
    pub(super) fn gives_empty(self, status: u16) -> Self {
        self.answers(status, "Success. A check answers this if it is true.", Content::Nothing)
    }
}
