//! Looks at a NorFab fabric from outside: lists its workers, and runs one task if one is given.
//!
//! ```text
//! probe tcp://127.0.0.1:5555 [--key BROKER_KEY] [--name NAME] [SERVICE TASK [KWARGS [WORKER..]]]
//! ```
//!
//! With `--key`, the broker's public key in Z85, the connection is secured by CURVE with a fresh pair of keys.

use std::collections::HashSet;
use std::error::Error;
use std::time::Duration;

use norfab_model::{
    Broker, Connection, FabricEventKind, Inbound, JobId, Json, Poll, Post, Reply, ReplyKind, Request, Timestamp,
    Workers,
};
use norfab_nfp::{ClientName, Endpoint, KeyPair, NfpBroker, PublicKey, Security};

/// How long the fabric may be silent.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Options {
    key: Option<String>,
    name: Option<String>,
    words: Vec<String>,
}

fn options() -> Options {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--key" => options.key = args.next(),
            "--name" => options.name = args.next(),
            _ => options.words.push(arg),
        }
    }
    options
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let Options { key, name, words } = options();
    let endpoint = words
        .first()
        .ok_or("usage: probe tcp://HOST:PORT [--key KEY] [--name NAME] [SERVICE TASK [KWARGS [WORKER..]]]")?;
    let security = match key {
        Some(key) => Security::Curve { keys: KeyPair::generate(), broker: PublicKey::from_z85(&key)? },
        None => Security::Plain,
    };
    let name = ClientName::new(name.unwrap_or_else(|| "probe".to_owned()))?;
    let mut broker = NfpBroker::connect(Endpoint::parse(endpoint)?, &name, security)?;
    show_workers(&mut broker).await?;
    if let [_, service, task, more @ ..] = words.as_slice() {
        run_task(&mut broker, service, task, more).await?;
    }
    broker.close().await;
    Ok(())
}

async fn show_workers(broker: &mut NfpBroker) -> Result<(), Box<dyn Error>> {
    let id = JobId::new(format!("probe-{}", std::process::id()))?;
    broker.send(Request::Mmi { id, task: "show_workers".to_owned(), kwargs: Json::empty_object() }).await?;
    loop {
        match receive(broker).await? {
            Inbound::Mmi { answer, .. } => {
                println!("workers: {}", answer.as_str());
                return Ok(());
            }
            Inbound::Connection(Connection::Trouble(text)) => return Err(text.into()),
            other => println!("{other:?}"),
        }
    }
}

async fn run_task(broker: &mut NfpBroker, service: &str, task: &str, more: &[String]) -> Result<(), Box<dyn Error>> {
    let (kwargs, workers) = more.split_first().map_or(("{}", &[][..]), |(kwargs, workers)| (kwargs.as_str(), workers));
    // A probe has no clock of its own; the identity is random all the same.
    let job = JobId::generate(Timestamp::from_seconds(0));
    let post = Post {
        job: job.clone(),
        service: service.to_owned(),
        target: Workers::from_names(workers.to_vec()),
        task: task.to_owned(),
        args: Json::empty_array(),
        kwargs: Json::parse(kwargs)?,
        timeout: 60,
        schedule_id: None,
        scheduled_for: None,
    };
    broker.send(Request::Post(post)).await?;
    let mut missing: Option<HashSet<String>> = None;
    while missing.as_ref().is_none_or(|workers| !workers.is_empty()) {
        let inbound = receive(broker).await?;
        let Inbound::Reply(Reply { kind, .. }) = inbound else {
            println!("{inbound:?}");
            continue;
        };
        match kind {
            ReplyKind::Result { worker, result } => {
                println!("result of {worker}: {}", result.as_str());
                missing.as_mut().map(|workers| workers.remove(&worker));
            }
            ReplyKind::Event(event) => {
                println!("event of {}: {:?}: {}", event.worker, event.kind, event.message);
                if event.kind == FabricEventKind::ResultReady {
                    let target = Workers::List(vec![event.worker]);
                    broker.send(Request::Get(Poll { job: job.clone(), service: service.to_owned(), target })).await?;
                }
            }
            ReplyKind::Accepted { workers } => {
                println!("accepted for {workers:?}");
                missing.get_or_insert_with(|| workers.into_iter().collect());
            }
            ReplyKind::Refused { errors } => return Err(errors.join("; ").into()),
            other => println!("{other:?}"),
        }
    }
    Ok(())
}

async fn receive(broker: &mut NfpBroker) -> Result<Inbound, Box<dyn Error>> {
    let mut batch = Vec::new();
    tokio::time::timeout(PATIENCE, broker.receive(&mut batch, 1)).await.map_err(|_| "nothing came any more")?;
    batch.pop().ok_or_else(|| "the connection has ended".into())
}
