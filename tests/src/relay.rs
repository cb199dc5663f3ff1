//! A place on the way to a broker that a test has in its hand: what comes is passed on to this broker or that one, or
//! stays where it is.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A TCP port of this machine that passes connections on. They break off whenever it is told another way, and when it is
/// dropped.
#[derive(Debug)]
pub struct Relay {
    endpoint: String,
    way: watch::Sender<Way>,
    task: JoinHandle<()>,
}

/// What becomes of what comes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// It goes to this address, and the answers come back.
    To(String),
    /// Connections are taken, and nothing is read from them.
    Nowhere,
}

impl Relay {
    /// Takes connections from now on, and reads nothing from them.
    ///
    /// # Panics
    ///
    /// When this machine has no free port.
    pub async fn to_nowhere() -> Self {
        Self::start(Way::Nowhere).await
    }

    /// Passes everything on to the broker at this endpoint, `tcp://HOST:PORT`.
    ///
    /// # Panics
    ///
    /// As [`to_nowhere`](Self::to_nowhere), and for what is no such endpoint.
    pub async fn to(endpoint: &str) -> Self {
        Self::start(Way::To(address(endpoint))).await
    }

    /// Where it listens, `tcp://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Breaks all connections off, and passes new ones on to another broker.
    ///
    /// # Panics
    ///
    /// For what is no endpoint.
    pub fn turn_to(&self, endpoint: &str) {
        self.way.send_replace(Way::To(address(endpoint)));
    }

    /// Leaves all connections as they are, new ones too, and reads nothing more from them, as a network does that loses
    /// every packet.
    pub fn hold(&self) {
        self.way.send_replace(Way::Nowhere);
    }

    async fn start(way: Way) -> Self {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("no free port");
        let endpoint = format!("tcp://{}", listener.local_addr().expect("it is bound"));
        let (way, seen) = watch::channel(way);
        Self { endpoint, way, task: tokio::spawn(take_in(listener, seen)) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn address(endpoint: &str) -> String {
    endpoint.strip_prefix("tcp://").expect("an endpoint begins with tcp://").to_owned()
}

async fn take_in(listener: TcpListener, way: watch::Receiver<Way>) {
    while let Ok((near, _)) = listener.accept().await {
        tokio::spawn(pass_on(near, way.clone()));
    }
}

/// Serves one connection, until it ends or there is another way for it.
async fn pass_on(mut near: TcpStream, mut way: watch::Receiver<Way>) {
    let first = way.borrow_and_update().clone();
    let mut far = match first {
        Way::To(address) => TcpStream::connect(address).await.ok(),
        Way::Nowhere => None,
    };
    let passing = async {
        match &mut far {
            // Who ended it is of no interest here.
            Some(far) => drop(copy_bidirectional(&mut near, far).await),
            None => std::future::pending().await,
        }
    };
    let told = tokio::select! {
        () = passing => return,
        told = way.changed() => told,
    };
    // Held where it is; both ends stay open until there is another way, or the relay is gone.
    if told.is_ok() && *way.borrow() == Way::Nowhere {
        _ = way.wait_for(|way| *way != Way::Nowhere).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::wait::PATIENCE;

    /// Listens, and says one byte to all who come.
    async fn saying(byte: u8) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(&[byte]).await.unwrap();
                kept.push(stream);
            }
        });
        endpoint
    }

    async fn come(relay: &Relay) -> TcpStream {
        TcpStream::connect(address(relay.endpoint())).await.unwrap()
    }

    async fn read(stream: &mut TcpStream) -> Vec<u8> {
        let mut heard = [0; 1];
        let length = tokio::time::timeout(PATIENCE, stream.read(&mut heard)).await.unwrap().unwrap_or(0);
        heard[..length].to_vec()
    }

    #[tokio::test]
    async fn what_comes_goes_the_way_that_was_told_last() {
        let (first, second) = (saying(1).await, saying(2).await);
        let relay = Relay::to(&first).await;
        let mut one = come(&relay).await;
        assert_eq!(read(&mut one).await, [1]);
        relay.hold();
        relay.turn_to(&second);
        assert!(read(&mut one).await.is_empty(), "it breaks off");
        assert_eq!(read(&mut come(&relay).await).await, [2]);
    }
}
