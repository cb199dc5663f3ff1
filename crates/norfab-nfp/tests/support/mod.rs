//! Brokers for tests: bare ROUTER sockets, without security and with CURVE, that the test itself speaks for.

use std::future::Future;
use std::time::Duration;

use norfab_model::{Broker, Connection, Inbound, JobId, Json, Poll, Post, Request, Workers};
use norfab_nfp::{ClientName, Endpoint, Frames, KeyPair, NfpBroker, PublicKey, Security};
use omq_tokio::{CurveKeypair, Message, Options, Socket, SocketType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Longer than anything takes that works.
pub(crate) const GENEROUS: Duration = Duration::from_secs(60);

/// Waits for what must come.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(GENEROUS, work).await.unwrap_or_else(|_| panic!("{what} took longer than {GENEROUS:?}"))
}

/// How a broker is secured.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Plain,
    Curve,
}

/// What survives a broker: its port and its keys.
pub(crate) struct Site {
    port: u16,
    keys: Option<CurveKeypair>,
}

impl Site {
    pub(crate) fn new(kind: Kind) -> Self {
        let keys = match kind {
            Kind::Plain => None,
            Kind::Curve => Some(CurveKeypair::generate()),
        };
        Self { port: 0, keys }
    }

    /// Starts a broker here: at a free port the first time, then at the same again.
    pub(crate) async fn open(&mut self) -> Router {
        let options = Options::default().router_mandatory(true);
        let options = match &self.keys {
            None => options,
            Some(keys) => options.curve_server(keys.clone()),
        };
        let socket = Socket::new(SocketType::Router, options);
        let bound = socket.bind(format!("tcp://127.0.0.1:{}", self.port).as_str()).await.unwrap().to_string();
        self.port = bound.rsplit_once(':').unwrap().1.parse().unwrap();
        Router(socket)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::parse(&format!("tcp://127.0.0.1:{}", self.port)).unwrap()
    }

    pub(crate) fn security(&self) -> Security {
        match &self.keys {
            None => Security::Plain,
            Some(keys) => {
                let broker = PublicKey::from_z85(&keys.public.to_z85()).unwrap();
                Security::Curve { keys: KeyPair::generate(), broker }
            }
        }
    }

    /// A client that has the right keys.
    pub(crate) fn client(&self) -> NfpBroker {
        client(self.endpoint(), self.security())
    }
}

pub(crate) struct Router(Socket);

impl Router {
    pub(crate) async fn stop(self) {
        self.0.close().await.unwrap();
    }

    /// The next message: who sent it, and its frames.
    pub(crate) async fn recv(&mut self) -> (String, Frames) {
        let mut message = within("a request", self.0.recv()).await.unwrap();
        let mut frames: Frames = std::iter::from_fn(|| message.pop_front()).map(Into::into).collect();
        (String::from_utf8(frames.remove(0)).unwrap(), frames)
    }

    /// Waits for the request of this number, whatever comes before.
    pub(crate) async fn recv_request(&mut self, number: usize) {
        while self.recv().await.1[5] != id(number).as_str().as_bytes() {}
    }

    pub(crate) async fn send(&mut self, to: &str, frames: Frames) {
        self.0.send_to(to, Message::multipart(frames)).await.unwrap();
    }
}

/// Something that greets and takes connections as a broker without security does, and then reads no more.
pub(crate) async fn sleepy_broker() -> (Endpoint, JoinHandle<()>) {
    raw_broker(b"").await
}

/// The same, but it says these bytes when a connection is made.
pub(crate) async fn raw_broker(says: &'static [u8]) -> (Endpoint, JoinHandle<()>) {
    const READY: &[u8] = b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06ROUTER";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::parse(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
    let task = tokio::spawn(async move {
        let mut greeting = [0; 64];
        greeting[..11].copy_from_slice(&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3]);
        greeting[12..16].copy_from_slice(b"NULL");
        let mut asleep = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&greeting).await.unwrap();
            // Who only looks is gone after the greeting.
            if stream.read_exact(&mut [0; 64]).await.is_ok() {
                stream.write_all(READY).await.unwrap();
                // It may have been cut off for what it says.
                let _ = stream.write_all(says).await;
                asleep.push(stream);
            }
        }
    });
    (endpoint, task)
}

pub(crate) fn client(endpoint: Endpoint, security: Security) -> NfpBroker {
    NfpBroker::connect(endpoint, &ClientName::new("tester").unwrap(), security).unwrap()
}

/// The next thing that the client says.
pub(crate) async fn next(client: &mut NfpBroker) -> Inbound {
    let mut batch = Vec::new();
    assert_eq!(within("a message", client.receive(&mut batch, 1)).await, 1);
    batch.pop().unwrap()
}

/// The next news of the connection; nothing else may come before.
pub(crate) async fn next_connection(client: &mut NfpBroker) -> Connection {
    match next(client).await {
        Inbound::Connection(connection) => connection,
        other => panic!("{other:?} instead of news of the connection"),
    }
}

/// Waits for a connection, failed attempts aside.
pub(crate) async fn connected(client: &mut NfpBroker) {
    while next_connection(client).await != Connection::Connected {}
}

/// Waits until the client says what the trouble is.
pub(crate) async fn trouble(client: &mut NfpBroker) -> String {
    loop {
        match next_connection(client).await {
            Connection::Trouble(text) => return text,
            Connection::Lost(_) => {}
            Connection::Connected => panic!("a connection where none can be"),
        }
    }
}

pub(crate) fn id(number: usize) -> JobId {
    JobId::new(format!("{number:032x}")).unwrap()
}

pub(crate) fn question(number: usize) -> Request {
    Request::Mmi { id: id(number), task: "show_workers".to_owned(), kwargs: Json::empty_object() }
}

pub(crate) fn get(number: usize) -> Request {
    Request::Get(Poll { job: id(number), service: "dummy".to_owned(), target: Workers::All })
}

pub(crate) fn post(number: usize, kwargs: String) -> Request {
    Request::Post(Post {
        job: id(number),
        service: "dummy".to_owned(),
        target: Workers::All,
        task: "echo".to_owned(),
        args: Json::empty_array(),
        kwargs: Json::parse(kwargs).unwrap(),
        timeout: 60,
        schedule_id: None,
        scheduled_for: None,
    })
}

/// A message of the broker.
pub(crate) fn says(command: &str, service: &str, uuid: &JobId, status: &str, payload: &str) -> Frames {
    ["", "NFPB01", command, service, uuid.as_str(), status, payload].map(|part| part.as_bytes().to_vec()).to_vec()
}
