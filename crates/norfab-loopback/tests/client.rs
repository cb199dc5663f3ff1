//! The loopback as the project's own client sees it, through the `Broker` port.

#[expect(dead_code, reason = "the bare client is for the other tests")]
mod support;

use std::collections::BTreeSet;

use norfab_loopback::{Loopback, LoopbackConfig};
use norfab_model::{
    Broker, Connection, FabricEventKind, Inbound, JobId, Json, Poll, Post, Reply, ReplyKind, Request, Workers,
};
use norfab_nfp::{ClientName, Endpoint, NfpBroker, Security};
use support::{JOB, StillClock};

fn connect(loopback: &Loopback) -> NfpBroker {
    let endpoint = Endpoint::parse(loopback.endpoint()).unwrap();
    NfpBroker::connect(endpoint, &ClientName::new("tester").unwrap(), Security::Plain).unwrap()
}

async fn next(broker: &mut NfpBroker) -> Inbound {
    let mut batch = Vec::new();
    let work = broker.receive(&mut batch, 1);
    assert_eq!(tokio::time::timeout(std::time::Duration::from_secs(30), work).await.expect("a message in time"), 1);
    batch.pop().unwrap()
}

async fn connected(broker: &mut NfpBroker) {
    while next(broker).await != Inbound::Connection(Connection::Connected) {}
}

fn get(service: &str, job: &JobId, target: Workers) -> Request {
    Request::Get(Poll { job: job.clone(), service: service.to_owned(), target })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_comes_back_from_every_worker() {
    let loopback = Loopback::start(LoopbackConfig::new("demo", 10), StillClock::new()).await.unwrap();
    let mut broker = connect(&loopback);
    connected(&mut broker).await;
    let job = JobId::new(JOB).unwrap();
    let post = Post {
        job: job.clone(),
        service: "demo".to_owned(),
        target: Workers::All,
        task: "echo".to_owned(),
        args: Json::empty_array(),
        kwargs: Json::empty_object(),
        timeout: 60,
        schedule_id: None,
        scheduled_for: None,
    };
    broker.send(Request::Post(post)).await.unwrap();
    let (mut stored, mut results) = (BTreeSet::new(), BTreeSet::new());
    while results.len() < 10 {
        let Inbound::Reply(Reply { job: of, kind, .. }) = next(&mut broker).await else { panic!("no reply") };
        assert_eq!(of, job);
        match kind {
            ReplyKind::Stored { worker } => assert!(stored.insert(worker)),
            ReplyKind::Event(event) if event.kind == FabricEventKind::ResultReady => {
                broker.send(get("demo", &job, Workers::One(event.worker))).await.unwrap();
            }
            ReplyKind::Result { worker, .. } => assert!(results.insert(worker)),
            _ => {}
        }
    }
    let workers: BTreeSet<String> = loopback.workers().iter().cloned().collect();
    assert_eq!((&stored, &results), (&workers, &workers));
    broker.close().await;
    loopback.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fabric_that_comes_back_is_found_again() {
    let clock = StillClock::new();
    let mut loopback = Loopback::start(LoopbackConfig::default(), clock.clone()).await.unwrap();
    let port: u16 = loopback.endpoint().rsplit_once(':').unwrap().1.parse().unwrap();
    let mut broker = connect(&loopback);
    for round in 0..3 {
        connected(&mut broker).await;
        let id = JobId::new(format!("question-{round}")).unwrap();
        let question = Request::Mmi { id: id.clone(), task: "show_workers".to_owned(), kwargs: Json::empty_object() };
        broker.send(question).await.unwrap();
        assert!(matches!(next(&mut broker).await, Inbound::Mmi { id: answered, .. } if answered == id));
        loopback.shutdown().await;
        assert!(matches!(next(&mut broker).await, Inbound::Connection(Connection::Lost(_))));
        loopback = Loopback::start(LoopbackConfig::default().port(port), clock.clone()).await.unwrap();
    }
    connected(&mut broker).await;
    broker.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_connections_of_one_client_are_served() {
    let loopback = Loopback::start(LoopbackConfig::default(), StillClock::new()).await.unwrap();
    let mut broker = connect(&loopback);
    connected(&mut broker).await;
    let job = JobId::new(JOB).unwrap();
    for _ in 0..20 {
        broker.reconnect().await.unwrap();
        connected(&mut broker).await;
        broker.send(get("demo", &job, Workers::One("demo-worker-1".to_owned()))).await.unwrap();
        while !matches!(next(&mut broker).await, Inbound::Reply(Reply { kind: ReplyKind::NotFound { .. }, .. })) {}
    }
}
