//! The handle of a running fabric.

use norfab_model::Clock;
use omq_tokio::{Options, Socket, SocketType};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::broker::{Broker, Registration};
use crate::config::{LoopbackConfig, LoopbackError};
use crate::record::{Execution, Records, SeenMessage};
use crate::serve::{Fabric, Order};
use crate::worker::Worker;

/// A broker and its workers, running in this process. Dropping it stops them soon; [`shutdown`](Self::shutdown) waits
/// for it.
#[derive(Debug)]
pub struct Loopback {
    endpoint: String,
    port: u16,
    workers: Vec<String>,
    records: Records,
    orders: mpsc::Sender<Order>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Loopback {
    /// Starts a fabric on the current runtime. It listens when this returns, and its workers are registered.
    ///
    /// `clock` gives the times that it writes, and how long its tasks take.
    ///
    /// # Errors
    /// A [`LoopbackError`] when the configuration makes no sense or the port cannot be listened on.
    pub async fn start<C: Clock>(config: LoopbackConfig, clock: C) -> Result<Self, LoopbackError> {
        config.check()?;
        let LoopbackConfig { service, workers, port, concurrency } = config;
        let (socket, endpoint) =
            listen(port).await.map_err(|source| LoopbackError::Bind { port, source: source.into() })?;
        let port = endpoint.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(port);

        let registrations = workers.iter().map(|name| Registration { name: name.clone(), service: service.clone() });
        let broker = Broker::new(endpoint.clone(), clock.uptime(), registrations.collect());
        let staff = workers.iter().map(|name| Worker::new(name, &service, concurrency)).collect();
        let records = Records::default();
        let (stop, stopped) = oneshot::channel();
        let (orders, ordered) = mpsc::channel(1);
        let fabric = Fabric::new(socket, broker, staff, clock, records.clone());
        let task = tokio::spawn(fabric.serve(ordered, stopped));
        Ok(Self { endpoint, port, workers, records, orders, stop, task })
    }

    /// Where the broker listens, `tcp://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The workers' names, in the order of their registration.
    #[must_use]
    pub fn workers(&self) -> &[String] {
        &self.workers
    }

    /// Every execution that has begun so far, in order.
    #[must_use]
    pub fn executions(&self) -> Vec<Execution> {
        self.records.executions()
    }

    /// Every whole message that came from a client so far, in order.
    #[must_use]
    pub fn messages(&self) -> Vec<SeenMessage> {
        self.records.messages()
    }

    /// Takes the broker away, as when its process is killed: clients are cut off, what is sent meanwhile is lost, the
    /// port is free. The workers stay, run what they have, and keep what they know.
    pub async fn stop_broker(&self) {
        let (done, is_done) = oneshot::channel();
        self.order(Order::Down(done), is_done).await;
    }

    /// Brings the broker back, at the endpoint where it was; the workers are registered when this returns.
    ///
    /// # Errors
    /// [`LoopbackError::Bind`] when another program has the port by now, and when the broker is there already.
    pub async fn start_broker(&self) -> Result<(), LoopbackError> {
        let port = self.port;
        let (socket, _) = listen(port).await.map_err(|source| LoopbackError::Bind { port, source: source.into() })?;
        let (done, is_done) = oneshot::channel();
        self.order(Order::Up(socket, done), is_done).await;
        Ok(())
    }

    /// A fabric that has ended obeys nothing, and needs not.
    async fn order(&self, order: Order, is_done: oneshot::Receiver<()>) {
        if self.orders.send(order).await.is_ok() {
            let _ = is_done.await;
        }
    }

    /// Stops broker, workers and running jobs, and frees the port.
    pub async fn shutdown(self) {
        // It may have ended already; then there is nothing to stop.
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            tracing::debug!(%error, "Loopback fabric did not end in order");
        }
    }
}

/// Messages that may wait for one client before further ones are dropped.
const CLIENT_QUEUE: u32 = 1 << 16;

/// A ROUTER without security, and its endpoint. As at NorFab's broker, a new connection takes over the name of an old one.
async fn listen(port: u16) -> omq_tokio::Result<(Socket, String)> {
    let socket = Socket::try_new(SocketType::Router, Options::default().send_hwm(CLIENT_QUEUE))?;
    let endpoint = socket.bind(format!("tcp://127.0.0.1:{port}").as_str()).await?;
    Ok((socket, endpoint.to_string()))
}
