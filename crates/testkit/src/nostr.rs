//! A relay client over a real socket, and keys that sign deterministically.

use crate::connect_from;
use abide_nostr::{Event, PublicKey};
use nostr::event::{Kind, Tag, UnsignedEvent};
use nostr::key::Keys;
use nostr::nips::nip19::ToBech32;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

/// Time limit for an answer; only a failing test reaches it.
const DEADLINE: Duration = Duration::from_secs(30);

/// A user's key. The same number is always the same key.
#[derive(Clone, Debug)]
pub struct Key {
    keys: Keys,
}

impl Key {
    /// Current system time in seconds, which servers under test use.
    pub fn now() -> u64 {
        seconds()
    }

    /// Key number `n`.
    pub fn new(n: u32) -> Self {
        Self { keys: Keys::parse(&format!("{:064x}", u64::from(n) + 1)).expect("small numbers are keys") }
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        self.keys.public_key()
    }

    /// The secret key in the form that clients accept.
    pub fn nsec(&self) -> String {
        self.keys.secret_key().to_bech32().expect("a key can be written")
    }

    /// A signed event, dated `at` in seconds.
    pub fn event(&self, at: u64, kind: u16, tags: &[&[&str]], content: &str) -> Event {
        let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).expect("a tag has a name"));
        let created_at = nostr::types::Timestamp::from_secs(at);
        let unsigned = UnsignedEvent::new(self.public(), created_at, Kind::from_u16(kind), tags, content);
        let id = unsigned.compute_id();
        let signature = self.keys.sign_schnorr_with_aux_rand(&secp256k1::Secp256k1::new(), id.as_bytes(), &[7; 32]);
        unsigned.add_signature(signature).expect("the signature is right")
    }

    /// An announcement of a repository on a server.
    pub fn announcement(&self, at: u64, identifier: &str, server: &str) -> Event {
        let clone = format!("{server}/x/{identifier}.git");
        let relay = server.replacen("http", "ws", 1);
        let tags: &[&[&str]] = &[&["d", identifier], &["clone", &clone], &["relays", &relay]];
        self.event(at, 30_617, tags, "")
    }

    /// Coordinate of a repository of this key, as in `a` tags.
    pub fn coordinate(&self, identifier: &str) -> String {
        format!("30617:{}:{identifier}", self.public())
    }
}

/// A message from the relay.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard(pub Value);

impl Heard {
    /// Message name, such as `EVENT` or `OK`.
    pub fn name(&self) -> &str {
        self.0[0].as_str().unwrap_or_default()
    }

    fn is(&self, name: &str, second: &str) -> bool {
        self.name() == name && self.0[1] == second
    }

    /// The event of an `EVENT` message.
    pub fn event(&self) -> Event {
        serde_json::from_value(self.0[2].clone()).unwrap_or_else(|error| panic!("{}: {error}", self.0))
    }
}

/// A connection to the relay.
pub struct Nostr {
    socket: WebSocket<TcpStream>,
    /// Messages received while waiting for another one.
    heard: VecDeque<Heard>,
}

impl Nostr {
    /// Connects to a server's relay; `url` begins with `http://` or `ws://`.
    ///
    /// # Panics
    /// If the connection fails.
    pub fn connect(url: &str) -> Self {
        Self::try_connect(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    /// Connects, or returns the error.
    pub fn try_connect(url: &str) -> Result<Self, Box<Error>> {
        let stream = TcpStream::connect(authority(url)).map_err(|error| Box::new(Error::Io(error)))?;
        Self::open(url, stream)
    }

    /// Connects from another loopback address, or returns the error.
    pub fn try_connect_from(from: IpAddr, url: &str) -> Result<Self, Box<Error>> {
        let address = authority(url).parse().expect("a server under test is named by address and port");
        let stream = connect_from(from, address).map_err(|error| Box::new(Error::Io(error)))?;
        Self::open(url, stream)
    }

    fn open(url: &str, stream: TcpStream) -> Result<Self, Box<Error>> {
        let address = authority(url);
        let _ = stream.set_nodelay(true);
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let opened = tungstenite::client::client_with_config(format!("ws://{address}/"), stream, Some(config));
        let (socket, _) = opened.map_err(|error| match error {
            tungstenite::HandshakeError::Failure(error) => Box::new(error),
            tungstenite::HandshakeError::Interrupted(_) => Box::new(Error::ConnectionClosed),
        })?;
        Ok(Self { socket, heard: VecDeque::new() })
    }

    /// Sends a message that the relay may refuse before it has received all of it.
    pub fn send_if_taken(&mut self, message: Message) {
        let _ = self.socket.send(message);
    }

    /// Sends a frame unchanged.
    pub fn send(&mut self, message: Message) {
        self.socket.send(message).expect("the socket is open");
    }

    /// Sends a text frame.
    pub fn say(&mut self, message: &Value) {
        self.send(Message::text(message.to_string()));
    }

    /// Next message within the time, except pings; `None` on timeout or if the socket is closed.
    pub fn hear_within(&mut self, time: Duration) -> Option<Heard> {
        if let Some(heard) = self.heard.pop_front() {
            return Some(heard);
        }
        self.read_within(time)
    }

    fn read_within(&mut self, time: Duration) -> Option<Heard> {
        let end = Instant::now() + time;
        loop {
            let left = end.checked_duration_since(Instant::now())?;
            self.socket.get_ref().set_read_timeout(Some(left.max(Duration::from_millis(1)))).ok()?;
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                    return Some(Heard(value));
                }
                Ok(_) => {}
                Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return None,
            }
        }
    }

    /// Reads until the socket is closed; returns code and reason of the close frame, if there was one.
    ///
    /// # Panics
    /// If the socket stays open.
    pub fn closed(&mut self) -> Option<(u16, String)> {
        self.socket.get_ref().set_read_timeout(Some(DEADLINE)).expect("it is a socket");
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => {
                    return frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                }
                Ok(_) => {}
                Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!("the socket stays open")
                }
                Err(_) => return None,
            }
        }
    }

    /// Waits for a matching message; keeps others for later.
    ///
    /// # Panics
    /// If none arrives in time.
    pub fn wait(&mut self, wanted: impl Fn(&Heard) -> bool) -> Heard {
        if let Some(index) = self.heard.iter().position(&wanted) {
            return self.heard.remove(index).expect("it was found there");
        }
        loop {
            let heard = self.read_within(DEADLINE).unwrap_or_else(|| panic!("waited in vain; heard {:?}", self.heard));
            if wanted(&heard) {
                return heard;
            }
            self.heard.push_back(heard);
        }
    }

    /// Publishes an event and waits for its OK.
    pub fn publish(&mut self, event: &Event) -> (bool, String) {
        self.say(&json!(["EVENT", event]));
        self.ok(event)
    }

    /// Waits for the OK of an event.
    pub fn ok(&mut self, event: &Event) -> (bool, String) {
        let id = event.id.to_hex();
        let heard = self.wait(|heard| heard.is("OK", &id));
        (heard.0[2] == true, heard.0[3].as_str().unwrap_or_default().to_owned())
    }

    /// Opens a subscription and returns the stored events.
    ///
    /// # Panics
    /// If it is refused.
    pub fn subscribe(&mut self, name: &str, filters: &[Value]) -> Vec<Event> {
        self.ask("REQ", name, filters);
        let mut stored = Vec::new();
        loop {
            let heard = self.wait(|heard| heard.0[1] == name);
            match heard.name() {
                "EVENT" => stored.push(heard.event()),
                "EOSE" => return stored,
                _ => panic!("{}", heard.0),
            }
        }
    }

    /// Stored events that match: a subscription that is closed again.
    pub fn req(&mut self, filters: &[Value]) -> Vec<Event> {
        let stored = self.subscribe("once", filters);
        self.say(&json!(["CLOSE", "once"]));
        stored
    }

    /// Next new event of a subscription.
    pub fn live(&mut self, name: &str) -> Event {
        self.wait(|heard| heard.is("EVENT", name)).event()
    }

    /// Number of matching events.
    pub fn count(&mut self, filters: &[Value]) -> u64 {
        self.ask("COUNT", "count", filters);
        let heard = self.wait(|heard| heard.is("COUNT", "count"));
        heard.0[2]["count"].as_u64().unwrap_or_else(|| panic!("{}", heard.0))
    }

    /// Sends `[name, subscription, filters…]`.
    pub fn ask(&mut self, name: &str, subscription: &str, filters: &[Value]) {
        let message: Vec<Value> =
            [json!(name), json!(subscription)].into_iter().chain(filters.iter().cloned()).collect();
        self.say(&Value::from(message));
    }

    /// Proves a key to the relay, with the challenge that the relay sends after a first attempt.
    pub fn auth(&mut self, author: &Key, relay: &str) -> (bool, String) {
        self.say(&json!(["AUTH", author.event(seconds(), 22_242, &[&["relay", relay]], "")]));
        let challenge = self.wait(|heard| heard.name() == "AUTH").0[1].as_str().unwrap_or_default().to_owned();
        let proof = author.event(seconds(), 22_242, &[&["relay", relay], &["challenge", &challenge]], "");
        self.say(&json!(["AUTH", proof]));
        self.ok(&proof)
    }
}

/// Host and port of a URL that begins with `http://` or `ws://`.
fn authority(url: &str) -> &str {
    url.trim_start_matches("http://").trim_start_matches("ws://").trim_end_matches('/')
}

/// Current system time in seconds, which servers under test use.
fn seconds() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a real server process goes by the machine's clock")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
