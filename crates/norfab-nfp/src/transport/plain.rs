//! Connections without security, on the `zeromq` crate. Its DEALER never connects again by itself and says only through
//! its monitor that the peer has gone, so that each connection gets a socket of its own. It would queue 100,000 messages
//! of any size, so that what it takes is limited here.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use zeromq::util::PeerIdentity;
use zeromq::{
    DealerRecvHalf, DealerSendHalf, DealerSocket, MultiPeerBackend, Socket, SocketEvent, SocketOptions, SocketRecv,
    SocketSend, ZmqMessage,
};

use super::flight::Flight;
use super::{Dialer, Endpoint, Inlet, Outlet};
use crate::frame::Frames;
use crate::name::ClientName;

/// How long connecting and the handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often to look whether the last message has left; the crate has no event for it.
const FLUSH_STEP: Duration = Duration::from_millis(2);

pub(super) struct PlainDialer {
    endpoint: Endpoint,
    name: ClientName,
}

impl PlainDialer {
    pub(super) fn new(endpoint: Endpoint, name: ClientName) -> Self {
        Self { endpoint, name }
    }
}

impl Dialer for PlainDialer {
    type Outlet = PlainOutlet;
    type Inlet = PlainInlet;
    const MECHANISM: &'static str = "NULL";

    async fn dial(&self) -> Result<(PlainOutlet, PlainInlet), String> {
        let mut options = SocketOptions::default();
        options.connect_timeout(CONNECT_TIMEOUT);
        options.peer_identity(self.name.as_str().parse::<PeerIdentity>().map_err(|error| error.to_string())?);
        let mut socket = DealerSocket::with_options(options);
        let monitor = socket.monitor();
        socket.connect(&self.endpoint.to_string()).await.map_err(|error| error.to_string())?;
        let backend = Arc::downgrade(&socket.backend());
        let (send, receive) = socket.split();
        let outlet = PlainOutlet { half: send, backend, flight: Flight::new() };
        Ok((outlet, PlainInlet { half: receive, monitor: monitor.boxed() }))
    }

    fn refused(&self) -> String {
        format!(
            "the broker at {} accepts connections and breaks them off at once; is it a NorFab broker?",
            self.endpoint
        )
    }
}

pub(super) struct PlainOutlet {
    half: DealerSendHalf,
    backend: Weak<dyn MultiPeerBackend>,
    flight: Flight,
}

impl Outlet for PlainOutlet {
    async fn send(&mut self, frames: Frames) -> Result<(), String> {
        let frames = self.flight.board(frames).await;
        let message = ZmqMessage::try_from(frames).map_err(|error| error.to_string())?;
        self.half.send(message).await.map_err(|error| error.to_string())
    }

    /// The socket's own task goes on writing what is queued after both halves are gone; the backend lives until it ends.
    async fn finish(self) {
        let Self { half, backend, .. } = self;
        drop(half);
        while backend.strong_count() > 0 {
            tokio::time::sleep(FLUSH_STEP).await;
        }
    }
}

pub(super) struct PlainInlet {
    half: DealerRecvHalf,
    monitor: BoxStream<'static, SocketEvent>,
}

impl Inlet for PlainInlet {
    /// The monitor speaks only while the socket is being read, so both are waited for together.
    async fn recv(&mut self) -> Result<Frames, String> {
        loop {
            tokio::select! {
                biased;
                message = self.half.recv() => {
                    let message = message.map_err(|error| error.to_string())?;
                    return Ok(message.into_vec().into_iter().map(Into::into).collect());
                }
                event = self.monitor.next() => match event {
                    Some(SocketEvent::Disconnected(_)) | None => return Err("the broker closed the connection".to_owned()),
                    Some(_) => {}
                },
            }
        }
    }
}
