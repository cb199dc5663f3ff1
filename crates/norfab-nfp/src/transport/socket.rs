//! What both kinds of connections have in common: sockets of the `omq-tokio` crate. Each connection gets a socket of its own,
//! although that crate could connect again by itself: so both kinds queue, pause and report alike.

use std::time::Duration;

use omq_tokio::{Message, MonitorEvent, MonitorRecvError, MonitorStream, Options, ReconnectPolicy, Socket, SocketType};

use super::flight::Flight;
use super::{Endpoint, Inlet, Outlet};
use crate::frame::Frames;
use crate::name::ClientName;

/// How long connecting and the handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than a socket lives without a connection: attempts are made here, not by the socket.
const NEVER_BY_ITSELF: Duration = Duration::from_secs(3600);
/// Messages that may wait inside the socket on the way out; their bytes are counted here.
const SEND_QUEUE: u32 = 64;
/// And on the way in, where it counts no bytes: as few as it can hold, as each may be a large one.
const RECEIVE_QUEUE: u32 = 16;
/// The most bytes of a message that comes, all its frames together: four times the largest result that is kept. Whoever
/// announces more, or never ends a message, is cut off before the memory is filled.
pub(super) const MOST_MESSAGE_BYTES: usize = 256 << 20;

/// What the sockets of every kind are like.
pub(super) fn options(name: &ClientName) -> Options {
    Options::default()
        .identity(name.as_str().as_bytes().to_vec())
        .reconnect(ReconnectPolicy::Fixed(NEVER_BY_ITSELF))
        .handshake_timeout(CONNECT_TIMEOUT)
        .send_hwm(SEND_QUEUE)
        .recv_hwm(RECEIVE_QUEUE)
        .max_message_size(MOST_MESSAGE_BYTES)
}

/// Makes one attempt to connect, handshake included, with a new socket.
pub(super) async fn dial(endpoint: &Endpoint, options: Options) -> Result<(SocketOutlet, SocketInlet), String> {
    let attempt = tokio::time::timeout(CONNECT_TIMEOUT, connect(endpoint, options)).await;
    let (socket, generation) = attempt.unwrap_or_else(|_| Err("no handshake in time".to_owned()))?;
    let inlet = SocketInlet { socket: socket.clone(), generation };
    Ok((SocketOutlet { socket, flight: Flight::new() }, inlet))
}

/// A connected socket, and the state of its connections before the first.
async fn connect(endpoint: &Endpoint, options: Options) -> Result<(Socket, u64), String> {
    let socket = Socket::try_new(SocketType::Dealer, options).map_err(|error| error.to_string())?;
    let generation = socket.connections_generation();
    let monitor = socket.monitor();
    socket.connect(endpoint.to_string().as_str()).await.map_err(|error| error.to_string())?;
    handshake(monitor).await.map(|()| (socket, generation))
}

/// A refusal shows only in that the socket wants to try again.
async fn handshake(mut monitor: MonitorStream) -> Result<(), String> {
    loop {
        match monitor.recv().await {
            Ok(MonitorEvent::HandshakeSucceeded { .. }) => return Ok(()),
            Ok(MonitorEvent::HandshakeFailed { reason, .. }) => return Err(reason),
            Ok(MonitorEvent::ConnectDelayed { .. } | MonitorEvent::ConnectStopped { .. }) => {
                return Err("no handshake".to_owned());
            }
            Ok(_) | Err(MonitorRecvError::Lagged(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

pub(super) struct SocketOutlet {
    socket: Socket,
    flight: Flight,
}

impl Outlet for SocketOutlet {
    async fn send(&mut self, frames: Frames) -> Result<(), String> {
        let frames = self.flight.board(frames).await;
        self.socket.send(Message::multipart(frames)).await.map_err(|error| error.to_string())
    }

    async fn finish(self) {
        if let Err(error) = self.socket.close_with_linger(Some(super::LINGER)).await {
            tracing::debug!(%error, "Socket did not close in order");
        }
    }
}

pub(super) struct SocketInlet {
    socket: Socket,
    /// The last state of the socket's connections that was looked at.
    generation: u64,
}

impl Inlet for SocketInlet {
    async fn recv(&mut self) -> Result<Frames, String> {
        let Self { socket, generation } = self;
        loop {
            tokio::select! {
                biased;
                message = socket.recv() => return message.map(frames_of).map_err(|error| error.to_string()),
                changed = look_at_connections(socket, generation) => changed?,
            }
        }
    }
}

/// Waits for a change of the connections and looks at them. The change counts as seen only when that is done, so that
/// nothing is missed when it is dropped half-way.
async fn look_at_connections(socket: &Socket, seen: &mut u64) -> Result<(), String> {
    let generation = socket.connections_changed(*seen).await.map_err(|error| error.to_string())?;
    let connections = socket.connections().await.map_err(|error| error.to_string())?;
    if connections.is_empty() {
        return Err("the broker closed the connection".to_owned());
    }
    *seen = generation;
    Ok(())
}

fn frames_of(mut message: Message) -> Frames {
    std::iter::from_fn(|| message.pop_front()).map(Into::into).collect()
}
