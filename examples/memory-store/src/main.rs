//! A program of its own that keeps its jobs in memory: the client is generic over its store, so that tests of a program
//! that schedules jobs need neither a file nor a NorFab installation.

use std::sync::Arc;
use std::time::Duration;

use norfab_client::{Client, Clock, Config, Limits, MemoryStore, NewJob, NfpBroker, Outcome, Ports, SystemClock};
use norfab_loopback::{Loopback, LoopbackConfig};

/// A client whose store is the one in memory.
type MemoryClient = Client<MemoryStore, NfpBroker, SystemClock>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fabric = Loopback::start(LoopbackConfig::default(), SystemClock).await?;
    let client: MemoryClient = client(fabric.endpoint())?;

    let at = SystemClock.now().saturating_add(Duration::from_millis(500));
    let job = NewJob::new("demo", "echo").kwargs(serde_json::json!({"text": "from memory"})).at(at);
    let mut handle = client.schedule_job(job).await?;
    match handle.outcome().await? {
        Outcome::Completed { results } => println!("Completed by {} workers", results.len()),
        other => println!("Ended otherwise: {other:?}"),
    }

    client.shutdown().await;
    fabric.shutdown().await;
    Ok(())
}

fn client(endpoint: &str) -> Result<MemoryClient, Box<dyn std::error::Error>> {
    let broker = norfab_client::connect_plain(endpoint, "example")?;
    let ports = Ports { store: Arc::new(MemoryStore::new()), broker, clock: SystemClock };
    Ok(Client::from_ports(ports, Config::default(), Limits::default()))
}
