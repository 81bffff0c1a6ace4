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
    /// Not said: there is none where the method has none.
    Unsaid,
    /// None, though the method could have one.
    Nothing,
    /// It may be left out.
    Perhaps(Body),
    /// It is needed.
    Always(Body),
}

impl Takes {
    /// Its body, if there is one.
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

/// A type that is sent or taken.
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

/// One way in which a route answers when it works.
#[derive(Clone)]
pub(super) struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub content: Content,
}

/// Kind of a response's body.
#[derive(Clone)]
pub(super) enum Content {
    /// Nothing.
    Nothing,
    /// One thing.
    One(Body),
    /// A list of things.
    Many(Body),
    /// One of several things.
    OneOrMany(Body),
    /// JSON without a fixed shape.
    Json,
    /// Bytes of these media types instead of JSON, where the client asks for them.
    Media(&'static [&'static str]),
}

/// Begins a description.
pub(super) fn about(summary: &'static str) -> About {
    About { summary, query: Vec::new(), body: Takes::Unsaid, answers: Vec::new() }
}

impl About {
    /// A parameter of the query that is text.
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

    /// The parameters of every list.
    pub(super) fn paged(self) -> Self {
        self.per_page().number("page", "Page number, starting at 1.")
    }

    /// The body it takes.
    pub(super) fn takes<T: ToSchema>(self) -> Self {
        Self { body: Takes::Always(Body::of::<T>()), ..self }
    }

    /// The body it takes, if there is one.
    pub(super) fn takes_perhaps<T: ToSchema>(self) -> Self {
        Self { body: Takes::Perhaps(Body::of::<T>()), ..self }
    }

    /// The address says it all.
    pub(super) fn takes_nothing(self) -> Self {
        Self { body: Takes::Nothing, ..self }
    }

    fn answers(mut self, status: u16, about: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status, about, content });
        self
    }

    /// One thing, with 200.
    pub(super) fn gives<T: ToSchema>(self) -> Self {
        self.answers(200, "Success.", Content::One(Body::of::<T>()))
    }

    /// One thing, with another status.
    pub(super) fn gives_with<T: ToSchema>(self, status: u16, about: &'static str) -> Self {
        self.answers(status, about, Content::One(Body::of::<T>()))
    }

    /// A page of a list.
    pub(super) fn gives_page<T: ToSchema>(self) -> Self {
        self.paged().answers(
            200,
            "One page of the list; `Link` has the URLs of other pages.",
            Content::Many(Body::of::<T>()),
        )
    }

    /// A short list as a whole.
    pub(super) fn gives_list<T: ToSchema>(self) -> Self {
        self.answers(200, "The whole list.", Content::Many(Body::of::<T>()))
    }

    /// A page of a log, the latest first.
    pub(super) fn gives_log<T: ToSchema>(self) -> Self {
        let paged = self.per_page().number("before", "Only entries older than the entry with this number.");
        paged.answers(200, "The newest entries; `Link` has the URL of older ones.", Content::Many(Body::of::<T>()))
    }

    /// One thing or a list of them.
    pub(super) fn gives_one_or_many<T: ToSchema>(self) -> Self {
        self.answers(200, "A file, or the entries of a directory.", Content::OneOrMany(Body::of::<T>()))
    }

    /// JSON without a fixed shape.
    pub(super) fn gives_json(self) -> Self {
        self.answers(200, "Success.", Content::Json)
    }

    /// The same as bytes, if the client accepts one of these rather than JSON.
    pub(super) fn or_media(self, media: &'static [&'static str]) -> Self {
        self.answers(200, "Success.", Content::Media(media))
    }

    /// A way to what has another address now.
    pub(super) fn moves(self) -> Self {
        self.answers(301, "Moved permanently; `Location` has the new URL.", Content::Json)
    }

    /// No content.
    pub(super) fn gives_nothing(self) -> Self {
        self.gives_empty(204)
    }

    /// No content, with a status of its own.
    pub(super) fn gives_empty(self, status: u16) -> Self {
        self.answers(status, "Success, or true.", Content::Nothing)
    }
}
