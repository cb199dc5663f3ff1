//! A connection to the broker that comes back by itself: one task owns the socket, channels lead to it. It connects,
//! serves until the connection is lost, and connects again after a growing pause. What is handed over meanwhile waits.

use std::future::Future;
use std::time::Duration;

use norfab_model::Connection;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::frame::Frames;
use crate::key::{KeyPair, PublicKey};
use crate::name::ClientName;

mod curve;
mod endpoint;
mod plain;
mod queue;

pub use endpoint::Endpoint;
use endpoint::{Listener, look};
use queue::Closed;

/// Messages that may wait, in either direction.
const QUEUE_MESSAGES: usize = 4096;
/// Bytes that may wait, in either direction; a larger message passes alone.
const QUEUE_BYTES: usize = 64 << 20;

/// Pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Failed handshakes in a row, with a listener that looks right, after which trying again will hardly help.
const HANDSHAKES_TRIED: u32 = 2;

/// How long an orderly end may take.
const LINGER: Duration = Duration::from_secs(1);

/// How a connection is secured. The broker decides; a client that differs from it gets no connection.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all (`zmq_auth: false`).
    Plain,
    /// CURVE: encrypted, and each side knows the other's key.
    Curve {
        /// The client's pair; NorFab's broker takes any.
        keys: KeyPair,
        /// The broker's public key.
        broker: PublicKey,
    },
}

/// What comes from the connection.
#[derive(Debug)]
pub(crate) enum Signal {
    /// A message.
    Frames(Frames),
    /// News of the connection itself.
    Connection(Connection),
}

/// A socket of one kind, ready to be connected as often as need be.
trait Dialer: Send + Sync + 'static {
    /// Sends on one connection.
    type Outlet: Outlet;
    /// Receives on one connection.
    type Inlet: Inlet;

    /// The mechanism that the broker's greeting must name.
    const MECHANISM: &'static str;

    /// Makes one attempt to connect, handshake included, with a new socket. It takes a few seconds at the most.
    fn dial(&self) -> impl Future<Output = Result<(Self::Outlet, Self::Inlet), String>> + Send;

    /// What to tell a person whose attempts fail at a broker with the right mechanism.
    fn refused(&self) -> String;
}

/// The sending half of one connection.
trait Outlet: Send {
    /// Hands a message to the socket, or says why the connection has ended.
    fn send(&mut self, frames: Frames) -> impl Future<Output = Result<(), String>> + Send;

    /// Waits until what was handed over has left; the receiving half is gone by then.
    fn finish(self) -> impl Future<Output = ()> + Send;
}

/// The receiving half of one connection.
trait Inlet: Send {
    /// Waits for the next message, or says why the connection has ended. Safe to drop while it waits.
    fn recv(&mut self) -> impl Future<Output = Result<Frames, String>> + Send;
}

/// The near end of a connection: what the `Broker` port holds.
#[derive(Debug)]
pub(crate) struct Transport {
    /// None once closed; that is what ends the task.
    ends: Option<Ends>,
    inbox: queue::Receiver<Signal>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Ends {
    outbox: queue::Sender<Frames>,
    renew: mpsc::Sender<()>,
}

/// The far end: what the task holds.
struct Ports {
    outbox: queue::Receiver<Frames>,
    renew: mpsc::Receiver<()>,
    inbox: queue::Sender<Signal>,
}

impl Transport {
    /// Starts the task on the current runtime. It connects by itself.
    pub(crate) fn start(endpoint: Endpoint, name: &ClientName, security: Security) -> Result<Self, Error> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
        let (outbox, outbox_end) = queue::bounded(QUEUE_MESSAGES, QUEUE_BYTES);
        let (inbox_end, inbox) = queue::bounded(QUEUE_MESSAGES, QUEUE_BYTES);
        let (renew, renew_end) = mpsc::channel(1);
        let ports = Ports { outbox: outbox_end, renew: renew_end, inbox: inbox_end };
        let task = match security {
            Security::Plain => {
                runtime.spawn(run(endpoint.clone(), plain::PlainDialer::new(endpoint, name.clone()), ports))
            }
            Security::Curve { keys, broker } => {
                let dialer = curve::CurveDialer::new(endpoint.clone(), name.clone(), keys, broker);
                runtime.spawn(run(endpoint, dialer, ports))
            }
        };
        Ok(Self { ends: Some(Ends { outbox, renew }), inbox, task })
    }

    /// Waits for room in the queue and hands a message over. Nothing is handed over when it is dropped while it waits.
    pub(crate) async fn send(&self, frames: Frames) -> Result<(), Closed> {
        let bytes = size(&frames);
        self.ends.as_ref().ok_or(Closed)?.outbox.send(frames, bytes).await
    }

    /// Waits for the next signal; `None` when the task has ended. Safe to drop while it waits.
    pub(crate) async fn recv(&mut self) -> Option<Signal> {
        self.inbox.recv().await
    }

    /// The next signal, if one is there.
    pub(crate) fn try_recv(&mut self) -> Option<Signal> {
        self.inbox.try_recv()
    }

    /// Throws the socket away and makes a new one. Several wishes at once are one.
    pub(crate) fn renew(&self) -> Result<(), Closed> {
        match self.ends.as_ref().ok_or(Closed)?.renew.try_send(()) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(())) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(())) => Err(Closed),
        }
    }

    /// Sends what is queued if there is a connection, and ends; within a second.
    pub(crate) async fn close(&mut self) {
        if self.ends.take().is_some() && tokio::time::timeout(LINGER, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

fn size(frames: &Frames) -> usize {
    frames.iter().map(Vec::len).sum()
}

/// Why there is no connection, or no longer.
#[derive(Debug)]
enum Ended {
    /// Nobody needs the transport any more.
    Closed,
    /// A new socket is wanted.
    Renewed,
    /// The connection was lost, and why.
    Lost(String),
    /// An attempt failed.
    Failed(Failure),
}

/// Why an attempt failed.
#[derive(Debug)]
enum Failure {
    /// Nothing answers; time may help.
    Unreachable(String),
    /// What listens cannot be the broker of this configuration.
    Mismatch(String),
    /// The listener looked right, and then broke the handshake off.
    Handshake(String),
}

/// Connects and serves, again and again.
async fn run<D: Dialer>(endpoint: Endpoint, dialer: D, mut ports: Ports) {
    let mut history = History::new();
    loop {
        let ended = match ports.unless_told(attempt(&endpoint, &dialer)).await {
            Ok((outlet, inlet)) => match ports.say(history.connected()).await {
                Ok(()) => ports.serve(outlet, inlet, &mut history).await,
                Err(Closed) => Ended::Closed,
            },
            Err(ended) => ended,
        };
        if matches!(ended, Ended::Closed) {
            return;
        }
        let news = history.ended(ended, &dialer);
        if ports.say(news).await.is_err() || ports.pause(history.pause()).await.is_err() {
            return;
        }
    }
}

async fn attempt<D: Dialer>(endpoint: &Endpoint, dialer: &D) -> Result<(D::Outlet, D::Inlet), Ended> {
    let failure = match look(endpoint).await {
        Listener::ZeroMq { mechanism } if mechanism == D::MECHANISM => match dialer.dial().await {
            Ok(connection) => return Ok(connection),
            Err(reason) => Failure::Handshake(format!("the broker at {endpoint} broke the connection off: {reason}")),
        },
        Listener::ZeroMq { mechanism } => Failure::Mismatch(mismatch(endpoint, &mechanism)),
        Listener::Foreign => {
            Failure::Mismatch(format!("what listens at {endpoint} is no NorFab broker: it speaks another protocol"))
        }
        Listener::Silent => {
            Failure::Unreachable(format!("the broker at {endpoint} accepts connections but does not answer"))
        }
        Listener::Unreachable(reason) => {
            Failure::Unreachable(format!("the broker at {endpoint} cannot be reached: {reason}"))
        }
    };
    Err(Ended::Failed(failure))
}

fn mismatch(endpoint: &Endpoint, mechanism: &str) -> String {
    match mechanism {
        "CURVE" => format!(
            "the broker at {endpoint} demands CURVE, and this client has none; set zmq_auth to true and give the \
             broker's public key"
        ),
        "NULL" => format!("the broker at {endpoint} has no CURVE, and this client demands it; set zmq_auth to false"),
        other => format!("the broker at {endpoint} demands {other:?}, which NorFab does not use"),
    }
}

/// What the attempts so far teach: how long to pause, and what was said already.
struct History {
    said: Option<Connection>,
    /// Whether the broker has sent anything on the last connection.
    heard: bool,
    failures: u32,
    handshakes_failed: u32,
}

impl History {
    fn new() -> Self {
        Self { said: None, heard: false, failures: 0, handshakes_failed: 0 }
    }

    fn connected(&mut self) -> Option<Connection> {
        self.heard = false;
        self.handshakes_failed = 0;
        self.news(Connection::Connected)
    }

    /// Counts an end, and returns what there is to say about it.
    fn ended<D: Dialer>(&mut self, ended: Ended, dialer: &D) -> Option<Connection> {
        let news = match ended {
            Ended::Closed => return None,
            Ended::Renewed => {
                self.failures = 0;
                if self.said != Some(Connection::Connected) {
                    return None;
                }
                Connection::Lost("a new connection was asked for".to_owned())
            }
            Ended::Lost(reason) => {
                self.failures = if self.heard { 1 } else { self.failures.saturating_add(1) };
                Connection::Lost(reason)
            }
            Ended::Failed(failure) => {
                self.failures = self.failures.saturating_add(1);
                self.failed(failure, dialer)
            }
        };
        self.news(news)
    }

    fn failed<D: Dialer>(&mut self, failure: Failure, dialer: &D) -> Connection {
        match failure {
            Failure::Unreachable(reason) => Connection::Lost(reason),
            Failure::Mismatch(reason) => Connection::Trouble(reason),
            Failure::Handshake(reason) => {
                self.handshakes_failed = self.handshakes_failed.saturating_add(1);
                if self.handshakes_failed < HANDSHAKES_TRIED {
                    Connection::Lost(reason)
                } else {
                    Connection::Trouble(dialer.refused())
                }
            }
        }
    }

    fn news(&mut self, news: Connection) -> Option<Connection> {
        if self.said.as_ref() == Some(&news) {
            return None;
        }
        self.said = Some(news.clone());
        Some(news)
    }

    /// None after a wish, else doubling with each failure in a row.
    fn pause(&self) -> Duration {
        match self.failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_PAUSE.saturating_mul(1 << doublings.min(16)).min(LONGEST_PAUSE),
        }
    }
}

impl Ports {
    /// Does something that the near end may interrupt.
    async fn unless_told<T>(&mut self, work: impl Future<Output = Result<T, Ended>>) -> Result<T, Ended> {
        tokio::select! {
            done = work => done,
            told = self.renew.recv() => Err(if told.is_some() { Ended::Renewed } else { Ended::Closed }),
        }
    }

    /// Pauses, but not when a new connection is wanted now.
    async fn pause(&mut self, pause: Duration) -> Result<(), Closed> {
        let sleep = async {
            tokio::time::sleep(pause).await;
            Ok(())
        };
        match self.unless_told(sleep).await {
            Err(Ended::Closed) => Err(Closed),
            _ => Ok(()),
        }
    }

    async fn say(&self, news: Option<Connection>) -> Result<(), Closed> {
        let Some(news) = news else { return Ok(()) };
        tracing::debug!(?news, "Connection to the broker changed");
        self.inbox.send(Signal::Connection(news), 0).await
    }

    /// Moves messages both ways until the connection is lost, a new one is wanted, or all is sent and nobody is left.
    async fn serve<O: Outlet, I: Inlet>(&mut self, mut outlet: O, mut inlet: I, history: &mut History) -> Ended {
        let ended = tokio::select! {
            ended = pump_out(&mut self.outbox, &mut outlet) => ended,
            ended = pump_in(&mut inlet, &self.inbox, &mut history.heard) => ended,
            Some(()) = self.renew.recv() => Ended::Renewed,
        };
        drop(inlet);
        if matches!(ended, Ended::Closed) {
            outlet.finish().await;
        }
        ended
    }
}

async fn pump_out<O: Outlet>(outbox: &mut queue::Receiver<Frames>, outlet: &mut O) -> Ended {
    while let Some(frames) = outbox.recv().await {
        if let Err(reason) = outlet.send(frames).await {
            return Ended::Lost(reason);
        }
    }
    Ended::Closed
}

async fn pump_in<I: Inlet>(inlet: &mut I, inbox: &queue::Sender<Signal>, heard: &mut bool) -> Ended {
    loop {
        let frames = match inlet.recv().await {
            Ok(frames) => frames,
            Err(reason) => return Ended::Lost(reason),
        };
        *heard = true;
        let bytes = size(&frames);
        if inbox.send(Signal::Frames(frames), bytes).await.is_err() {
            return Ended::Closed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dialer that is never asked to dial.
    struct Undialled;

    impl Outlet for Undialled {
        async fn send(&mut self, _: Frames) -> Result<(), String> {
            Err("undialled".to_owned())
        }

        async fn finish(self) {}
    }

    impl Inlet for Undialled {
        async fn recv(&mut self) -> Result<Frames, String> {
            Err("undialled".to_owned())
        }
    }

    impl Dialer for Undialled {
        type Outlet = Self;
        type Inlet = Self;
        const MECHANISM: &'static str = "NULL";

        async fn dial(&self) -> Result<(Self, Self), String> {
            Err("undialled".to_owned())
        }

        fn refused(&self) -> String {
            "refused".to_owned()
        }
    }

    fn failed(history: &mut History, failure: Failure) -> Option<Connection> {
        history.ended(Ended::Failed(failure), &Undialled)
    }

    fn lost(text: &str) -> Option<Connection> {
        Some(Connection::Lost(text.to_owned()))
    }

    fn trouble(text: &str) -> Option<Connection> {
        Some(Connection::Trouble(text.to_owned()))
    }

    #[test]
    fn what_was_said_is_not_said_again() {
        let mut history = History::new();
        let unreachable = || Failure::Unreachable("gone".to_owned());
        assert_eq!(failed(&mut history, unreachable()), lost("gone"));
        assert_eq!(failed(&mut history, unreachable()), None);
        assert_eq!(failed(&mut history, Failure::Mismatch("other".to_owned())), trouble("other"));
        assert_eq!(failed(&mut history, unreachable()), lost("gone"));
        assert_eq!(history.connected(), Some(Connection::Connected));
    }

    #[test]
    fn one_failed_handshake_is_chance_two_are_trouble() {
        let mut history = History::new();
        let handshake = || Failure::Handshake("hung up".to_owned());
        assert_eq!(failed(&mut history, handshake()), lost("hung up"));
        assert_eq!(failed(&mut history, handshake()), trouble("refused"));
        history.connected();
        assert_eq!(failed(&mut history, handshake()), lost("hung up"));
    }

    #[test]
    fn a_wish_for_a_new_connection_is_told_only_when_there_was_one() {
        let mut history = History::new();
        assert_eq!(history.ended(Ended::Renewed, &Undialled), None);
        history.connected();
        assert!(matches!(history.ended(Ended::Renewed, &Undialled), Some(Connection::Lost(_))));
        assert_eq!(history.pause(), Duration::ZERO);
    }

    #[test]
    fn pauses_grow_to_a_few_seconds_and_shrink_with_success() {
        let mut history = History::new();
        let mut pauses = Vec::new();
        for _ in 0..40 {
            failed(&mut history, Failure::Unreachable("gone".to_owned()));
            pauses.push(history.pause().as_millis());
        }
        assert_eq!(pauses[..7], [100, 200, 400, 800, 1600, 3000, 3000]);
        assert_eq!(pauses[39], 3000);
        // A connection on which nothing came is no success.
        history.connected();
        history.ended(Ended::Lost("gone".to_owned()), &Undialled);
        assert_eq!(history.pause(), LONGEST_PAUSE);
        history.connected();
        history.heard = true;
        history.ended(Ended::Lost("gone".to_owned()), &Undialled);
        assert_eq!(history.pause(), FIRST_PAUSE);
    }
}
