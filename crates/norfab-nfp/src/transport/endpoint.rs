//! Where a broker listens, and a first look at what listens there: a dialled socket that fails does not say why.

use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::frame::shown;

/// How long a broker may take to answer a connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// The TCP address of a broker, `tcp://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// Reads `tcp://HOST:PORT`; an IPv6 host stands in brackets.
    ///
    /// # Errors
    /// [`Error::Endpoint`] for another scheme, a missing or impossible port, or a host that one can only listen on.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parts(text).map_err(|problem| Error::Endpoint {
            endpoint: text.chars().take(300).collect(),
            problem: problem.to_owned(),
        })
    }

    fn parts(text: &str) -> Result<Self, &'static str> {
        let rest = text.trim().strip_prefix("tcp://").ok_or("it does not begin with tcp://")?;
        let (host, port) = rest.rsplit_once(':').ok_or("it has no port")?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or("its port is not a number from 1 to 65535")?;
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        if host == "*" {
            return Err("a client needs the host's name or address in place of *");
        }
        if host.is_empty() || host.chars().any(|c| c.is_control() || c.is_whitespace() || c == '/') {
            return Err("it has no host");
        }
        if host.contains(':') && !is_bracketed {
            return Err("an IPv6 address must stand in brackets");
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// The host as a resolver takes it, without brackets.
    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp://{}:{}", self.host, self.port)
    }
}

/// What listens at an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// A ZeroMQ socket with this security mechanism, such as `NULL` or `CURVE`.
    ZeroMq {
        /// The mechanism's name.
        mechanism: String,
    },
    /// Something that speaks another protocol.
    Foreign,
    /// Something that accepts connections and then says nothing.
    Silent,
    /// Nothing that can be reached; the system's words.
    Unreachable(String),
}

/// Connects, exchanges the beginning of a ZeroMQ greeting, and hangs up.
pub(crate) async fn look(endpoint: &Endpoint) -> Listener {
    let address = (endpoint.bare_host(), endpoint.port);
    let mut stream = match tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Listener::Unreachable(error.to_string()),
        Err(_) => return Listener::Unreachable(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    match tokio::time::timeout(PATIENCE, greet(&mut stream)).await {
        Ok(Ok(listener)) => listener,
        Ok(Err(error)) => Listener::Unreachable(format!("it hung up: {error}")),
        Err(_) => Listener::Silent,
    }
}

/// Bytes of a greeting: 10 of signature, 2 of version, 20 of mechanism, 1 of role, the rest filler.
const GREETING: usize = 64;

/// A peer sends the whole of its greeting once it has seen our signature and version. Ours stops there, so that the peer
/// finds no mechanism of ours to object to before it has spoken.
async fn greet(stream: &mut TcpStream) -> std::io::Result<Listener> {
    const BEGINNING: [u8; 11] = [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3];
    stream.write_all(&BEGINNING).await?;
    let mut greeting = [0; GREETING];
    stream.read_exact(&mut greeting[..1]).await?;
    if greeting[0] != BEGINNING[0] {
        return Ok(Listener::Foreign);
    }
    stream.read_exact(&mut greeting[1..]).await?;
    Ok(read_greeting(&greeting))
}

fn read_greeting(greeting: &[u8; GREETING]) -> Listener {
    if greeting[0] != 0xff || greeting[9] != 0x7f || greeting[10] < 3 {
        return Listener::Foreign;
    }
    let name = greeting[12..32].split(|byte| *byte == 0).next().unwrap_or_default();
    Listener::ZeroMq { mechanism: shown(name) }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        match (Endpoint::parse(text), expected) {
            (Ok(endpoint), Ok(expected)) => assert_eq!(endpoint.to_string(), expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn endpoints() {
        check("tcp://127.0.0.1:5555", Ok("tcp://127.0.0.1:5555"));
        check(" tcp://broker.example.net:5555 ", Ok("tcp://broker.example.net:5555"));
        check("tcp://[::1]:5555", Ok("tcp://[::1]:5555"));
        check("127.0.0.1:5555", Err("does not begin with tcp://"));
        check("ipc:///tmp/x", Err("does not begin with tcp://"));
        check("tcp://localhost", Err("no port"));
        check("tcp://localhost:0", Err("1 to 65535"));
        check("tcp://localhost:99999", Err("1 to 65535"));
        check("tcp://*:5555", Err("in place of *"));
        check("tcp://:5555", Err("no host"));
        check("tcp://::1:5555", Err("in brackets"));
    }

    /// What is seen of a listener that sends `answer` and then waits for the end, or hangs up itself.
    async fn look_at(answer: &'static [u8], then: Then) -> Listener {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(answer).await.unwrap();
            if then == Then::Wait {
                // How it ends does not matter here: with what it has not read, a client that hangs up resets.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        });
        let seen = look(&endpoint).await;
        server.await.unwrap();
        seen
    }

    #[derive(PartialEq)]
    enum Then {
        Wait,
        HangUp,
    }

    #[tokio::test]
    async fn foreign_protocols_are_told_apart() {
        assert_eq!(look_at(&[b'x'; 100], Then::Wait).await, Listener::Foreign);
        assert_eq!(look_at(b"SSH-2.0\r\n", Then::HangUp).await, Listener::Foreign);
        assert_eq!(look_at(&[0xff; 100], Then::Wait).await, Listener::Foreign);
    }

    #[tokio::test]
    async fn a_listener_that_dies_is_not_foreign() {
        for answer in [&b""[..], &[0xff, 0, 0]] {
            let seen = look_at(answer, Then::HangUp).await;
            assert!(matches!(&seen, Listener::Unreachable(reason) if reason.contains("hung up")), "{seen:?}");
        }
    }

    #[tokio::test]
    async fn the_mechanism_is_read() {
        const GREETING_OF_CURVE: &[u8] = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01CURVE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\
            \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(look_at(GREETING_OF_CURVE, Then::Wait).await, Listener::ZeroMq { mechanism: "CURVE".to_owned() });
    }

    #[tokio::test]
    async fn nobody_there() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let seen = look(&Endpoint::parse(&format!("tcp://{free}")).unwrap()).await;
        assert!(matches!(seen, Listener::Unreachable(_)), "{seen:?}");
    }
}
