//! A connection to the broker that comes back by itself: one task owns the socket, channels lead to it. It connects,
//! serves until the connection is lost, and connects again after a growing pause.
//!
//! A request belongs to one connection: the last one that the near end has heard of. It leaves on that connection or not
//! at all, since whoever sends requests asks anew for what matters once there is another. A question to the broker, which
//! changes nothing and which somebody waits for, waits for the next connection if there is none.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use norfab_model::Connection;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::frame::Frames;
use crate::key::{KeyPair, PublicKey};
use crate::name::ClientName;

mod attempt;
mod curve;
mod endpoint;
mod flight;
mod history;
mod plain;
mod queue;
mod room;
mod socket;

use attempt::attempt;
pub use endpoint::Endpoint;
use history::{Ended, History};
use queue::Closed;
pub(crate) use queue::Refused;

/// Messages that may wait, in either direction.
const QUEUE_MESSAGES: usize = 4096;
/// Bytes that may wait, in either direction; a larger message passes alone.
const QUEUE_BYTES: usize = 64 << 20;

/// Questions that may wait.
pub(crate) const QUESTIONS: usize = 256;
/// Bytes of questions that may wait; a larger question passes alone.
const QUESTION_BYTES: usize = 16 << 20;

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
    /// News of the connection itself, and the number of the connection that there is now.
    Connection(Connection, Option<u64>),
}

impl Signal {
    /// Bytes of the message.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Frames(frames) => size(frames),
            Self::Connection(..) => 0,
        }
    }
}

/// A request, and the number of the connection that it belongs to.
#[derive(Debug)]
struct Parcel {
    frames: Frames,
    connection: u64,
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

/// The near end of a connection: what the `Broker` port holds. What waits is lost when it is dropped without
/// [`close`](Self::close).
#[derive(Debug)]
pub(crate) struct Transport {
    /// None once closed; that is what ends the task.
    ends: Option<Ends>,
    inbox: queue::Receiver<Signal>,
    /// The number of the connection, as far as its signals have been received; None while there is none.
    connection: Option<u64>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Ends {
    requests: queue::Sender<Parcel>,
    questions: queue::Sender<Frames>,
    renew: mpsc::Sender<()>,
}

/// The far end: what the task holds.
struct Ports {
    requests: queue::Receiver<Parcel>,
    questions: queue::Receiver<Frames>,
    renew: mpsc::Receiver<()>,
    inbox: queue::Sender<Signal>,
    /// The number of the last connection.
    connection: u64,
}

impl Transport {
    /// Starts the task on the current runtime. It connects by itself.
    pub(crate) fn start(endpoint: Endpoint, name: &ClientName, security: Security) -> Result<Self, Error> {
        let runtime = Handle::try_current().map_err(|_| Error::NoRuntime)?;
        Ok(match security {
            Security::Plain => {
                let dialer = plain::PlainDialer::new(endpoint.clone(), name.clone());
                Self::spawn(&runtime, |ports| run(endpoint, dialer, ports))
            }
            Security::Curve { keys, broker } => {
                let dialer = curve::CurveDialer::new(endpoint.clone(), name.clone(), keys, broker);
                Self::spawn(&runtime, |ports| run(endpoint, dialer, ports))
            }
        })
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(runtime: &Handle, task: impl FnOnce(Ports) -> F) -> Self {
        let (requests, requests_end) = queue::bounded(QUEUE_MESSAGES, QUEUE_BYTES);
        let (questions, questions_end) = queue::bounded(QUESTIONS, QUESTION_BYTES);
        let (inbox_end, inbox) = queue::bounded(QUEUE_MESSAGES, QUEUE_BYTES);
        let (renew, renew_end) = mpsc::channel(1);
        let ports = Ports {
            requests: requests_end,
            questions: questions_end,
            renew: renew_end,
            inbox: inbox_end,
            connection: 0,
        };
        let task = runtime.spawn(task(ports));
        Self { ends: Some(Ends { requests, questions, renew }), inbox, connection: None, task }
    }

    /// Hands a request over, for the connection that there is. Without one it is lost at once, which is no error: it is
    /// what happens to a request whenever the connection breaks.
    pub(crate) fn send(&self, frames: Frames) -> Result<(), Refused> {
        let ends = self.ends.as_ref().ok_or(Refused::Closed)?;
        let Some(connection) = self.connection else {
            tracing::debug!("Dropped a request, for there is no connection to the broker");
            return Ok(());
        };
        let bytes = size(&frames);
        ends.requests.try_send(Parcel { frames, connection }, bytes)
    }

    /// Hands a question to the broker over, for this connection or the next one.
    pub(crate) fn ask(&self, frames: Frames) -> Result<(), Refused> {
        let bytes = size(&frames);
        self.ends.as_ref().ok_or(Refused::Closed)?.questions.try_send(frames, bytes)
    }

    /// Waits for the next signal; `None` when the task has ended, which it does only after [`close`](Self::close) or with
    /// its runtime. Safe to drop while it waits.
    pub(crate) async fn recv(&mut self) -> Option<Signal> {
        let signal = self.inbox.recv().await;
        self.noticed(signal)
    }

    /// The next signal, if one is there.
    pub(crate) fn try_recv(&mut self) -> Option<Signal> {
        let signal = self.inbox.try_recv();
        self.noticed(signal)
    }

    fn noticed(&mut self, signal: Option<Signal>) -> Option<Signal> {
        if let Some(Signal::Connection(_, connection)) = &signal {
            self.connection = *connection;
        }
        signal
    }

    /// Throws the socket away and makes a new one. Several wishes at once are one.
    pub(crate) fn renew(&mut self) -> Result<(), Closed> {
        match self.ends.as_ref().ok_or(Closed)?.renew.try_send(()) {
            Ok(()) | Err(mpsc::error::TrySendError::Full(())) => {
                self.connection = None;
                Ok(())
            }
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

impl Drop for Transport {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn size(frames: &Frames) -> usize {
    frames.iter().map(Vec::len).sum()
}

/// Connects and serves, again and again. A panic in the code beneath costs the connection, not the transport.
async fn run<D: Dialer>(endpoint: Endpoint, dialer: D, mut ports: Ports) {
    let mut history = History::new();
    loop {
        let connection = AssertUnwindSafe(connect_and_serve(&endpoint, &dialer, &mut ports, &mut history));
        let ended = connection.catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!("The transport to the broker failed unexpectedly and starts again");
            Ended::Crashed
        });
        if matches!(ended, Ended::Closed) {
            return;
        }
        let news = history.ended(ended, || dialer.refused());
        if ports.say(news, None).await.is_err() || ports.pause(history.pause()).await.is_err() {
            return;
        }
    }
}

async fn connect_and_serve<D: Dialer>(
    endpoint: &Endpoint,
    dialer: &D,
    ports: &mut Ports,
    history: &mut History,
) -> Ended {
    let (outlet, inlet) = match ports.unless_told(attempt(endpoint, dialer)).await {
        Ok(connection) => connection,
        Err(ended) => return ended,
    };
    ports.connection += 1;
    match ports.say(history.connected(), Some(ports.connection)).await {
        Ok(()) => ports.serve(outlet, inlet, history).await,
        Err(Closed) => Ended::Closed,
    }
}

impl Ports {
    /// Does something that the near end may interrupt. There is no connection meanwhile, so that requests are for one that
    /// is gone.
    async fn unless_told<T>(&mut self, work: impl Future<Output = Result<T, Ended>>) -> Result<T, Ended> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                told = self.renew.recv() => return Err(if told.is_some() { Ended::Renewed } else { Ended::Closed }),
                Some(_) = self.requests.recv() => {}
            }
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

    async fn say(&self, news: Option<Connection>, connection: Option<u64>) -> Result<(), Closed> {
        let Some(news) = news else { return Ok(()) };
        tracing::debug!(?news, "Connection to the broker changed");
        self.inbox.send(Signal::Connection(news, connection), 0).await
    }

    /// Moves messages both ways until the connection is lost, a new one is wanted, or all is sent and nobody is left.
    async fn serve<O: Outlet, I: Inlet>(&mut self, mut outlet: O, mut inlet: I, history: &mut History) -> Ended {
        let ended = tokio::select! {
            ended = pump_out(&mut self.requests, &mut self.questions, self.connection, &mut outlet) => ended,
            ended = pump_in(&mut inlet, &self.inbox, history) => ended,
            Some(()) = self.renew.recv() => Ended::Renewed,
        };
        drop(inlet);
        if matches!(ended, Ended::Closed) {
            outlet.finish().await;
        }
        ended
    }
}

/// Questions go first: among them is the one whether the broker answers at all.
async fn pump_out<O: Outlet>(
    requests: &mut queue::Receiver<Parcel>,
    questions: &mut queue::Receiver<Frames>,
    connection: u64,
    outlet: &mut O,
) -> Ended {
    loop {
        let frames = tokio::select! {
            biased;
            Some(frames) = questions.recv() => frames,
            Some(parcel) = requests.recv() => {
                if parcel.connection != connection {
                    continue;
                }
                parcel.frames
            }
            else => return Ended::Closed,
        };
        if let Err(reason) = outlet.send(frames).await {
            return Ended::Lost(reason);
        }
    }
}

async fn pump_in<I: Inlet>(inlet: &mut I, inbox: &queue::Sender<Signal>, history: &mut History) -> Ended {
    loop {
        let frames = match inlet.recv().await {
            Ok(frames) => frames,
            Err(reason) => return Ended::Lost(reason),
        };
        history.heard();
        let bytes = size(&frames);
        if inbox.send(Signal::Frames(frames), bytes).await.is_err() {
            return Ended::Closed;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// A transport whose far end has said all this, and whose task has ended. It must fit into the queue.
    pub(crate) async fn saying(signals: Vec<Signal>) -> Transport {
        let mut transport = Transport::spawn(&Handle::current(), |ports| async move {
            for signal in signals {
                let bytes = signal.size();
                ports.inbox.send(signal, bytes).await.unwrap();
            }
        });
        (&mut transport.task).await.unwrap();
        transport
    }

    fn message(text: &str) -> Frames {
        vec![text.as_bytes().to_vec()]
    }

    async fn connection(transport: &mut Transport) -> Connection {
        match transport.recv().await {
            Some(Signal::Connection(connection, _)) => connection,
            other => panic!("{other:?}"),
        }
    }

    /// A socket that does nothing but write to a channel and, once told, break.
    #[derive(Clone)]
    struct Scripted {
        sent: mpsc::UnboundedSender<Frames>,
        breaks: Arc<tokio::sync::Notify>,
        dials: Arc<AtomicU32>,
        /// The attempt that panics.
        panics_at: u32,
    }

    impl Scripted {
        fn new(panics_at: u32) -> (Self, mpsc::UnboundedReceiver<Frames>) {
            let (sent, receiver) = mpsc::unbounded_channel();
            (Self { sent, breaks: Arc::default(), dials: Arc::default(), panics_at }, receiver)
        }
    }

    impl Outlet for Scripted {
        async fn send(&mut self, frames: Frames) -> Result<(), String> {
            self.sent.send(frames).map_err(|error| error.to_string())
        }

        async fn finish(self) {}
    }

    impl Inlet for Scripted {
        async fn recv(&mut self) -> Result<Frames, String> {
            self.breaks.notified().await;
            Err("broken".to_owned())
        }
    }

    impl Dialer for Scripted {
        type Outlet = Self;
        type Inlet = Self;
        const MECHANISM: &'static str = "NULL";

        async fn dial(&self) -> Result<(Self, Self), String> {
            let dial = self.dials.fetch_add(1, Ordering::Relaxed) + 1;
            assert_ne!(dial, self.panics_at, "as it was told");
            Ok((self.clone(), self.clone()))
        }

        fn refused(&self) -> String {
            "refused".to_owned()
        }
    }

    /// Something that greets like a broker without security, as often as it is looked at.
    async fn greeter() -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("tcp://{}", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            let mut greeting = [0; 64];
            greeting[..11].copy_from_slice(&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3]);
            greeting[12..16].copy_from_slice(b"NULL");
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(&greeting).await.unwrap();
                // How it ends does not matter.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        });
        endpoint
    }

    async fn start(dialer: Scripted) -> Transport {
        let endpoint = greeter().await;
        Transport::spawn(&Handle::current(), |ports| run(endpoint, dialer, ports))
    }

    #[tokio::test]
    async fn a_panic_beneath_is_told_and_costs_one_connection() {
        let (dialer, mut sent) = Scripted::new(1);
        let mut transport = start(dialer).await;
        let Connection::Trouble(text) = connection(&mut transport).await else { panic!("no trouble") };
        assert!(text.contains("failed unexpectedly"), "{text}");
        assert_eq!(connection(&mut transport).await, Connection::Connected);
        transport.send(message("a")).unwrap();
        assert_eq!(sent.recv().await, Some(message("a")));
        transport.close().await;
        assert!(transport.recv().await.is_none());
    }

    #[tokio::test]
    async fn a_request_leaves_on_its_connection_or_never() {
        let (dialer, mut sent) = Scripted::new(0);
        let breaks = Arc::clone(&dialer.breaks);
        let mut transport = start(dialer).await;
        transport.send(message("before the first connection")).unwrap();
        assert_eq!(connection(&mut transport).await, Connection::Connected);
        breaks.notify_one();
        // The second connection is there before the near end knows that the first one is not.
        let lost = transport.inbox.recv().await;
        assert!(matches!(lost, Some(Signal::Connection(Connection::Lost(_), None))), "{lost:?}");
        let second = transport.inbox.recv().await;
        assert!(matches!(second, Some(Signal::Connection(Connection::Connected, Some(2)))), "{second:?}");
        transport.send(message("for the first connection")).unwrap();
        transport.noticed(second);
        transport.send(message("for the second connection")).unwrap();
        assert_eq!(sent.recv().await, Some(message("for the second connection")));

        transport.renew().unwrap();
        transport.send(message("while a new one is made")).unwrap();
        assert!(matches!(connection(&mut transport).await, Connection::Lost(_)));
        assert_eq!(connection(&mut transport).await, Connection::Connected);
        transport.send(message("for the third connection")).unwrap();
        assert_eq!(sent.recv().await, Some(message("for the third connection")));
    }

    #[tokio::test]
    async fn a_question_waits_for_a_connection() {
        let (dialer, mut sent) = Scripted::new(0);
        let mut transport = start(dialer).await;
        for _ in 0..3 {
            transport.ask(message("anybody there?")).unwrap();
            assert_eq!(sent.recv().await, Some(message("anybody there?")));
            transport.renew().unwrap();
        }
    }

    #[tokio::test]
    async fn requests_for_a_lost_connection_do_not_fill_the_queue() {
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let endpoint = Endpoint::parse(&format!("tcp://{nobody}")).unwrap();
        let (dialer, _sent) = Scripted::new(0);
        let transport = Transport::spawn(&Handle::current(), |ports| run(endpoint, dialer, ports));
        let requests = &transport.ends.as_ref().unwrap().requests;
        for _ in 0..3 * QUEUE_MESSAGES {
            let parcel = Parcel { frames: message("late"), connection: 0 };
            requests.send(parcel, QUEUE_BYTES / 1000).await.unwrap();
        }
    }
}
