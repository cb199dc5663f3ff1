//! A bare DEALER that speaks NFP without a client around it: the limit of everything that goes over the wire. It is of the
//! library that the client uses, or the two would be compared beside what is measured.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use norfab_client::SystemClock;
use norfab_model::{Clock, JobId};
use omq_tokio::{Message, Options, Socket, SocketType};

/// A connection to a broker without CURVE.
pub(crate) struct Dealer {
    outlet: Outlet,
    inlet: Inlet,
}

/// Its sending half.
pub(crate) struct Outlet {
    socket: Socket,
    service: String,
}

/// Its receiving half.
pub(crate) struct Inlet(Socket);

/// What a message of the broker says, as far as a bare exchange cares.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// The job's result can be asked for.
    Ready(String),
    /// A job's result.
    Result,
    /// A step on the way.
    Other,
}

impl Dealer {
    /// Connects under a name, and speaks to the workers of this service.
    pub(crate) async fn connect(endpoint: &str, name: &str, service: &str) -> Result<Self> {
        let options = Options::default().identity(name.as_bytes().to_vec());
        let socket = Socket::try_new(SocketType::Dealer, options).context("no DEALER")?;
        socket.connect(endpoint).await.context("no connection to the broker")?;
        let inlet = Inlet(socket.clone());
        Ok(Self { outlet: Outlet { socket, service: service.to_owned() }, inlet })
    }

    /// Its halves, for who sends and receives at once.
    pub(crate) fn split(self) -> (Outlet, Inlet) {
        (self.outlet, self.inlet)
    }

    /// Jobs from their POSTs to their results, at most `window` of them under way, the workers taking turns.
    pub(crate) async fn run_jobs(&mut self, workers: &[String], count: usize, window: usize) -> Result<()> {
        let (mut posted, mut done) = (0, 0);
        let mut turns = workers.iter().cycle();
        let mut sent = std::collections::HashMap::new();
        while done < count {
            while posted < count && posted - done < window {
                let worker = turns.next().context("no workers")?;
                let job = new_job();
                self.outlet.post(&job, worker).await?;
                sent.insert(job, worker);
                posted += 1;
            }
            match self.inlet.said().await? {
                Said::Ready(job) => {
                    let worker = sent.get(&job).context("a stranger's job")?;
                    self.outlet.get(&job, worker).await?;
                }
                Said::Result => done += 1,
                Said::Other => {}
            }
        }
        Ok(())
    }
}

impl Outlet {
    /// Sends an `echo`.
    pub(crate) async fn post(&mut self, job: &str, worker: &str) -> Result<()> {
        self.send("0x04", job, worker, r#"{"task":"echo","kwargs":{"n":1},"args":[],"timeout":600}"#).await
    }

    /// Asks for the result.
    async fn get(&mut self, job: &str, worker: &str) -> Result<()> {
        self.send("0x06", job, worker, "{}").await
    }

    async fn send(&mut self, command: &str, job: &str, worker: &str, payload: &str) -> Result<()> {
        let frames = ["", "NFPC01", command, &self.service, worker, job, payload];
        let frames: Vec<Bytes> = frames.map(|frame| frame.as_bytes().to_vec().into()).into();
        self.socket.send(Message::multipart(frames)).await.context("the broker takes no message")
    }
}

impl Inlet {
    /// Waits for the next message.
    pub(crate) async fn said(&mut self) -> Result<Said> {
        let mut message = self.0.recv().await.context("the broker is gone")?;
        let message: Vec<Bytes> = std::iter::from_fn(|| message.pop_front()).collect();
        let [_, _, command, _, job, status, payload] = message.as_slice() else { bail!("not a message of NFP") };
        Ok(match (command.as_ref(), status.as_ref()) {
            (b"0x08", _) if contains(payload, b"result_ready") => {
                Said::Ready(String::from_utf8_lossy(job).into_owned())
            }
            (b"0x05", b"200") => Said::Result,
            (b"0x05", b"400" | b"404") => bail!("the broker refused a job: {}", String::from_utf8_lossy(payload)),
            _ => Said::Other,
        })
    }
}

/// A new identity of a job.
pub(crate) fn new_job() -> String {
    JobId::generate(SystemClock.now()).to_string()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
