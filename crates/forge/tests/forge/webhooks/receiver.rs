//! Receiver of webhook deliveries that answers as the test wants.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::LOCATION;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub enum Reply {
    Status(u16),
    /// To another path of the same server.
    Redirect,
    /// So many bytes.
    Huge(usize),
    /// Not before [`Receiver::let_go`].
    Hang,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Got {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    pub fn event(&self) -> &str {
        self.header("x-github-event")
    }

    pub fn guid(&self) -> String {
        self.header("x-github-delivery").to_owned()
    }

    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

#[derive(Clone)]
pub struct Receiver {
    pub at: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    usual: Mutex<Reply>,
    first: Mutex<VecDeque<Reply>>,
    got: watch::Sender<Vec<Got>>,
    held: watch::Sender<bool>,
}

impl Receiver {
    /// Answers everything with 200 unless set otherwise.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let at = listener.local_addr().expect("it is bound");
        let inner = Arc::new(Inner {
            usual: Mutex::new(Reply::Status(200)),
            first: Mutex::new(VecDeque::new()),
            got: watch::Sender::new(Vec::new()),
            held: watch::Sender::new(true),
        });
        let shared = inner.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let inner = shared.clone();
                tokio::spawn(async move {
                    let answer = service_fn(|request| answer(inner.clone(), request));
                    let _ =
                        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { at, inner }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.at)
    }

    /// From now on.
    pub fn always(&self, reply: Reply) {
        *self.inner.usual.lock().expect("no test panics in here") = reply;
    }

    /// The next ones, before what is usual.
    pub fn next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.inner.first.lock().expect("no test panics in here").extend(replies);
    }

    /// Pending requests get their answer.
    pub fn let_go(&self) {
        self.inner.held.send_replace(false);
    }

    pub fn got(&self) -> Vec<Got> {
        self.inner.got.borrow().clone()
    }

    /// Forgets what was received.
    pub fn clear(&self) {
        self.inner.got.send_replace(Vec::new());
    }

    /// Waits until so many were received.
    pub async fn wait_for(&self, count: usize) -> Vec<Got> {
        let mut got = self.inner.got.subscribe();
        let enough = got.wait_for(|got| got.len() >= count);
        let got = tokio::time::timeout(std::time::Duration::from_secs(60), enough).await;
        got.expect("nothing arrives any more").expect("the receiver lives").clone()
    }
}

async fn answer(inner: Arc<Inner>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a whole request").to_bytes();
    let reply = {
        let usual = *inner.usual.lock().expect("no test panics in here");
        inner.first.lock().expect("no test panics in here").pop_front().unwrap_or(usual)
    };
    let got = Got { path: head.uri.path().to_owned(), headers: head.headers, body };
    inner.got.send_modify(|all| all.push(got));
    let response = |status: u16, body: Vec<u8>| {
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
        response
    };
    Ok(match reply {
        Reply::Status(status) => response(status, b"said".to_vec()),
        Reply::Huge(size) => response(200, vec![b'x'; size]),
        Reply::Redirect => {
            let mut to = response(302, Vec::new());
            to.headers_mut().insert(LOCATION, "/elsewhere".parse().expect("a header"));
            to
        }
        Reply::Hang => {
            let _ = inner.held.subscribe().wait_for(|held| !held).await;
            response(200, Vec::new())
        }
    })
}
