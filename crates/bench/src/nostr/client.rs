//! A minimal relay client.

use crate::Failure;
use crate::io;
use std::net::TcpStream;
use tungstenite::{Message, WebSocket};

pub(crate) struct Client(WebSocket<TcpStream>);

impl Client {
    pub(crate) fn connect(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).map_err(io("connect to the relay"))?;
        stream.set_nodelay(true).map_err(io("set up a socket"))?;
        let opened = tungstenite::client(format!("ws://{address}/"), stream);
        let (socket, _) = opened.map_err(|error| Failure::failed(format!("no socket: {error}")))?;
        Ok(Self(socket))
    }

    /// Puts a frame into the buffer.
    pub(crate) fn put(&mut self, text: String) -> Result<(), Failure> {
        self.0.write(Message::text(text)).map_err(broken)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(broken)
    }

    pub(crate) fn send(&mut self, text: String) -> Result<(), Failure> {
        self.put(text)?;
        self.flush()
    }

    /// The next text frame.
    pub(crate) fn read(&mut self) -> Result<String, Failure> {
        loop {
            if let Message::Text(text) = self.0.read().map_err(broken)? {
                return Ok(text.as_str().to_owned());
            }
        }
    }

    /// Reads frames until one begins with `start`.
    pub(crate) fn read_to(&mut self, start: &str) -> Result<usize, Failure> {
        let mut others = 0;
        while !self.read()?.starts_with(start) {
            others += 1;
        }
        Ok(others)
    }
}

fn broken(error: tungstenite::Error) -> Failure {
    Failure::failed(format!("the relay's socket broke: {error}"))
}
