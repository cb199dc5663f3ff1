//! A client of bare frames, and a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use norfab_loopback::{Loopback, LoopbackConfig};
use norfab_model::{Clock, Moment, Timestamp, Uptime};
use tokio::sync::watch;
use zeromq::{DealerSocket, Socket, SocketOptions, SocketRecv, SocketSend, ZmqMessage};

/// Longer than anything takes that works.
const GENEROUS: Duration = Duration::from_secs(30);

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct StillClock(Arc<watch::Sender<Moment>>);

impl StillClock {
    pub(crate) fn new() -> Self {
        let wall = Timestamp::parse("2026-11-29T15:59:15.250Z").unwrap();
        Self(Arc::new(watch::Sender::new(Moment { wall, up: Uptime::START })))
    }

    pub(crate) fn advance(&self, seconds: u32) {
        let by = Duration::from_secs(seconds.into());
        self.0.send_modify(|now| *now = Moment { wall: now.wall.saturating_add(by), up: now.up.saturating_add(by) });
    }
}

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        self.0.borrow().wall
    }

    fn uptime(&self) -> Uptime {
        self.0.borrow().up
    }

    async fn sleep_until(&self, at: Timestamp, until: Uptime) {
        self.0.subscribe().wait_for(|now| now.wall >= at || now.up >= until).await.unwrap();
    }
}

/// The job of most tests.
pub(crate) const JOB: &str = "043b0d5c1e8f4a7c9d2e6b1a0f3c5d7e";

/// A fabric of the service `demo` with two workers.
pub(crate) async fn fabric() -> (Loopback, StillClock, Client) {
    let clock = StillClock::new();
    let loopback = Loopback::start(LoopbackConfig::default(), clock.clone()).await.unwrap();
    let client = Client::connect(&loopback, "tester").await;
    (loopback, clock, client)
}

pub(crate) struct Client(DealerSocket);

impl Client {
    pub(crate) async fn connect(loopback: &Loopback, name: &str) -> Self {
        let mut options = SocketOptions::default();
        options.peer_identity(name.parse().unwrap());
        let mut socket = DealerSocket::with_options(options);
        socket.connect(loopback.endpoint()).await.unwrap();
        Self(socket)
    }

    pub(crate) async fn send(&mut self, frames: &[&[u8]]) {
        let mut message = ZmqMessage::from(frames[0].to_vec());
        frames[1..].iter().for_each(|frame| message.push_back(frame.to_vec().into()));
        self.0.send(message).await.unwrap();
    }

    pub(crate) async fn say(&mut self, command: &str, service: &str, target: &str, uuid: &str, payload: &str) {
        let frames = ["", "NFPC01", command, service, target, uuid, payload].map(str::as_bytes);
        self.send(&frames).await;
    }

    pub(crate) async fn post(&mut self, target: &str, uuid: &str, payload: &str) {
        self.say("0x04", "demo", target, uuid, payload).await;
    }

    pub(crate) async fn get(&mut self, target: &str, uuid: &str) {
        self.say("0x06", "demo", target, uuid, "{}").await;
    }

    /// The next message, its frames joined by ` | ` without the first two, which never change.
    pub(crate) async fn hear(&mut self) -> String {
        let message = tokio::time::timeout(GENEROUS, self.0.recv()).await.expect("a message in time").unwrap();
        let frames: Vec<String> =
            message.into_vec().into_iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
        assert_eq!(frames[..2], ["", "NFPB01"]);
        frames[2..].join(" | ")
    }

    #[track_caller]
    pub(crate) fn expect<'a>(&'a mut self, expected: &'a str) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let heard = self.hear().await;
            assert_eq!(heard, expected, "at {place}");
        }
    }

    /// The status and the payload of the next message.
    pub(crate) async fn hear_status(&mut self) -> (String, serde_json::Value) {
        let heard = self.hear().await;
        let parts: Vec<&str> = heard.splitn(5, " | ").collect();
        (parts[3].to_owned(), serde_json::from_str(parts[4]).unwrap())
    }

    /// Nothing more comes from the broker: a question is answered next.
    #[track_caller]
    pub(crate) fn expect_silence(&mut self) -> impl Future<Output = ()> + '_ {
        let place = std::panic::Location::caller();
        async move {
            self.say(
                "0x11",
                "sid.service.broker",
                "any",
                "silence",
                r#"{"task":"get_inventory","kwargs":{"name":"x"}}"#,
            )
            .await;
            for command in ["0x05", "0x11"] {
                let heard = self.hear().await;
                assert_eq!(heard, format!("{command} | sid.service.broker | silence | 200 | null"), "at {place}");
            }
        }
    }

    /// Hears everything up to the answer to a question that is asked now.
    pub(crate) async fn settle(&mut self) {
        self.say("0x11", "sid.service.broker", "any", "silence", r#"{"task":"get_inventory"}"#).await;
        while !self.hear().await.starts_with("0x11") {}
    }

    /// Posts a job to the first worker, hears it to its end, and returns its result.
    pub(crate) async fn run(&mut self, uuid: &str, payload: &str) -> serde_json::Value {
        self.post("demo-worker-1", uuid, payload).await;
        while !self.hear().await.contains("result_ready") {}
        self.get("demo-worker-1", uuid).await;
        assert_eq!(self.hear_status().await.0, "202");
        let (status, payload) = self.hear_status().await;
        assert_eq!(status, "200");
        payload["demo-worker-1"].clone()
    }
}
