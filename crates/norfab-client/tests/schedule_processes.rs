//! Two processes that dispatch for one database without the owner's lock, on the wall clock, for half a minute: each
//! occurrence becomes one row, none is lost, and the counters tell all. Each process is this test program again, told by
//! its environment what to do, with a scripted fabric of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use norfab_client::{Config, Interval, Ports, SystemClock};
use norfab_dispatch::{Control, Dispatcher, Notice};
use norfab_model::{
    Broker, BrokerError, Clock, Coalesce, Connection, Inbound, Job, JobFilter, JobId, JobStatus, Json, Limits,
    NewSchedule, OverlapPolicy, Reply, ReplyKind, Request, Schedule, ScheduleFilter, ScheduleState, ScheduleStore,
    Store, Timestamp, Workers,
};
use norfab_store::{SqliteStore, StoreOptions};
use tokio::sync::mpsc;

const PATH: &str = "NORFAB_CLIENT_TEST_PATH";
/// How long the schedules run.
const SECONDS: u32 = 30;
/// The task that takes longer than its schedule's interval.
const SLOW: &str = "slow";
/// Longer than anything here takes, also on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(180);

/// A broker and a worker that take every job and end it, at once or after a while. A question for a job is answered by
/// its result, as the worker of the other process would.
struct ScriptedFabric {
    say: mpsc::UnboundedSender<Inbound>,
    inbound: mpsc::UnboundedReceiver<Inbound>,
}

impl ScriptedFabric {
    fn connected() -> Self {
        let (say, inbound) = mpsc::unbounded_channel();
        say.send(Inbound::Connection(Connection::Connected)).expect("the other end is here");
        Self { say, inbound }
    }

    fn reply(&self, job: &JobId, kind: ReplyKind) {
        self.say.send(Inbound::Reply(Reply::new(job.clone(), kind))).expect("the other end is here");
    }

    /// Ends a job when its task is over.
    fn end_later(&self, job: JobId) {
        let say = self.say.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            // The dispatcher may have stopped; then the result is asked for at the next start.
            let _ = say.send(Inbound::Reply(Reply::new(job, result())));
        });
    }
}

fn result() -> ReplyKind {
    ReplyKind::Result { worker: "w1".into(), result: Json::parse("{\"result\":1,\"failed\":false}").expect("valid") }
}

impl Broker for ScriptedFabric {
    async fn send(&mut self, request: Request) -> Result<(), BrokerError> {
        match request {
            Request::Mmi { id, .. } => {
                self.say.send(Inbound::Mmi { id, answer: Json::empty_array() }).expect("the other end is here");
            }
            Request::Post(post) => {
                println!("post {}", post.job);
                self.reply(&post.job, ReplyKind::Accepted { workers: vec!["w1".into()] });
                self.reply(&post.job, ReplyKind::Stored { worker: "w1".into() });
                if post.task == SLOW {
                    self.end_later(post.job);
                } else {
                    self.reply(&post.job, result());
                }
            }
            Request::Get(poll) => self.reply(&poll.job, result()),
            Request::Put { .. } => {}
        }
        Ok(())
    }

    async fn receive(&mut self, batch: &mut Vec<Inbound>, limit: usize) -> usize {
        self.inbound.recv_many(batch, limit).await
    }

    async fn reconnect(&mut self) -> Result<(), BrokerError> {
        Ok(())
    }

    async fn close(&mut self) {}
}

/// In a child: dispatches until the schedules are at their end and no job is unfinished. Says what it sends, which jobs it
/// makes, and what its health knows of the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other test starts it in processes of its own"]
async fn child_dispatches() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    let store = Arc::new(open(&path).await);
    let ports = Ports { store: Arc::clone(&store), broker: ScriptedFabric::connected(), clock: SystemClock };
    let (dispatcher, control, mut notices) = Dispatcher::new(ports, Config::default());
    let dispatcher = tokio::spawn(dispatcher.run());
    let health = tokio::spawn(tell_troubles(control.clone()));
    while !is_over(&store).await {
        // Whatever changes the database is told of here: what this process does at once, what the other does in a moment.
        match notices.recv().await.expect("the dispatcher runs") {
            Notice::Job(job) if job.status == JobStatus::New => println!("made {}", job.uuid),
            _ => {}
        }
    }
    control.shutdown();
    dispatcher.await.expect("no panic");
    drop(control);
    health.await.expect("no panic");
    store.close().await;
    println!("over");
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, &StoreOptions::default()).await.expect("opens")
}

/// Says each trouble with the database: the dispatcher keeps one up for a tenth of a second at the least.
async fn tell_troubles(control: Control) {
    let mut health = control.health();
    drop(control);
    while health.changed().await.is_ok() {
        if let Some(error) = &health.borrow_and_update().storage_error {
            println!("trouble {error}");
        }
    }
}

async fn is_over(store: &SqliteStore) -> bool {
    let running = ScheduleFilter { states: vec![ScheduleState::Active], limit: 1, ..ScheduleFilter::default() };
    store.schedule_list(&running).await.expect("lists").schedules.is_empty()
        && store.job_unfinished().await.expect("lists").is_empty()
}

/// Schedules of both kinds: of some every occurrence counts, of some only the last while nothing runs.
async fn add_schedules(store: &SqliteStore) -> Vec<Schedule> {
    let now = SystemClock.now();
    let start = now.ceil_second().plus_seconds(3);
    let every = |name: &str, seconds, task: &str| {
        NewSchedule::new("dummy", task, Interval::new(seconds).expect("an interval"))
            .workers(Workers::One("w1".to_owned()))
            .name(name)
            .start_at(start)
            .end_at(start.plus_seconds(SECONDS))
    };
    let all = |new: NewSchedule| new.coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(1000);
    let new = [
        all(every("each second", 1, "echo")),
        all(every("each second too", 1, "echo")),
        all(every("each other second", 2, "echo")),
        all(every("jittered", 2, "echo")).jitter(1),
        every("last one", 1, "echo"),
        every("last one of two", 2, "echo"),
        every("one at a time", 1, SLOW),
        all(every("two at a time", 1, SLOW)).max_instances(2).grace(5),
    ];
    let mut schedules = Vec::new();
    for new in new {
        let valid = Limits::default().check_schedule(now, new).expect("valid");
        schedules.push(store.schedule_add(&valid).await.expect("added"));
    }
    schedules
}

/// What a child said.
#[derive(Debug, Default)]
struct Said {
    posts: BTreeMap<String, u32>,
    made: BTreeSet<String>,
    troubles: Vec<String>,
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "child_dispatches", "--include-ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .env(PATH, path)
        .spawn()
        .expect("starts")
}

/// Reads what a child says to its end.
fn listen(mut child: Child) -> Said {
    let mut said = Said::default();
    let mut is_over = false;
    // The first line of a child begins with the name of its test.
    for line in BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok) {
        let words = ["post ", "made ", "trouble "].iter().find_map(|word| Some((*word, line.split_once(word)?.1)));
        match words {
            Some(("post ", job)) => *said.posts.entry(job.to_owned()).or_default() += 1,
            Some(("made ", job)) => drop(said.made.insert(job.to_owned())),
            Some((_, trouble)) => said.troubles.push(trouble.to_owned()),
            None => is_over |= line == "over",
        }
    }
    assert!(child.wait().expect("ends").success() && is_over, "{said:?}");
    said
}

/// All jobs of a schedule.
async fn jobs(store: &SqliteStore, schedule: &Schedule) -> Vec<Job> {
    let filter = JobFilter { schedule: Some(schedule.uuid.clone()), limit: 1000, ..JobFilter::default() };
    let page = store.job_list(&filter).await.expect("lists");
    assert_eq!((page.unreadable.len(), page.next), (0, None));
    page.jobs
}

/// Every occurrence is in exactly one counter, and the jobs are those that the counters tell of, each once.
#[track_caller]
fn check(schedule: &Schedule, grid: &BTreeSet<Timestamp>, jobs: &[Job]) {
    let label = schedule.label();
    assert_eq!((schedule.state, schedule.next), (ScheduleState::Completed, None), "{label}");
    let counted = schedule.counters;
    let decided =
        counted.total_runs + counted.coalesced_runs + counted.missed_runs + counted.overlap_skips + counted.passed_over;
    assert_eq!(decided, grid.len() as u64, "{label}: {counted:?}");
    let (missed, made): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.status == JobStatus::Missed);
    assert_eq!(made.len() as u64, counted.total_runs, "{label}");
    assert!(missed.len() as u64 <= counted.missed_runs, "{label}: {counted:?}");
    let occurrences: BTreeSet<Timestamp> = jobs.iter().filter_map(|job| job.scheduled_for).collect();
    assert_eq!(occurrences.len(), jobs.len(), "{label}: no occurrence twice");
    assert!(occurrences.is_subset(grid), "{label}: on the grid");
    for job in jobs {
        let occurrence = job.scheduled_for.expect("an occurrence");
        assert_eq!(job.uuid, JobId::of_occurrence(&schedule.uuid, occurrence), "{label}");
    }
    assert!(made.iter().all(|job| job.status == JobStatus::Completed), "{label}");
    assert_eq!(counted.failed_runs, 0, "{label}");
    if schedule.coalesce == Coalesce::All && schedule.max_instances == 1000 {
        assert_eq!(&occurrences, grid, "{label}: no hole");
    }
}

#[tokio::test]
async fn two_processes_dispatch_from_one_database() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("jobs.db");
    let store = open(&path).await;
    let schedules = add_schedules(&store).await;
    let children = [start(&path), start(&path)].map(|child| tokio::task::spawn_blocking(move || listen(child)));
    let mut said = Vec::new();
    for child in children {
        said.push(tokio::time::timeout(PATIENCE, child).await.expect("ends in time").expect("no panic"));
    }
    let mut all_jobs = Vec::new();
    for schedule in &schedules {
        let jobs = jobs(&store, schedule).await;
        let grid: BTreeSet<Timestamp> = schedule.preview(schedule.created_at).map(|next| next.occurrence).collect();
        assert!(grid.len() as u32 > SECONDS / 2, "{grid:?}");
        let view = store.schedule_find(&schedule.uuid.clone().into()).await.expect("readable").expect("there");
        assert_eq!(view.active_jobs, 0);
        check(&view.schedule, &grid, &jobs);
        all_jobs.extend(jobs);
    }
    // Of who sends a job the claim decides. A process that starts sends anew what was claimed and not answered.
    let sent: BTreeSet<&String> = said.iter().flat_map(|one| one.posts.keys()).collect();
    let made: Vec<&String> = said.iter().flat_map(|one| &one.made).collect();
    let made_once: BTreeSet<&String> = made.iter().copied().collect();
    assert_eq!(made_once.len(), made.len(), "no job is made by both");
    for job in all_jobs.iter().filter(|job| job.status != JobStatus::Missed) {
        assert!(sent.contains(&job.uuid.to_string()), "{} was sent", job.uuid);
        assert!(made_once.contains(&job.uuid.to_string()), "{} was made", job.uuid);
    }
    let troubles: Vec<_> = said.iter().flat_map(|one| &one.troubles).collect();
    assert!(troubles.is_empty(), "{troubles:?}");
    for (number, one) in said.iter().enumerate() {
        println!("process {number}: {} jobs made, {} sent", one.made.len(), one.posts.len());
    }
    assert!(said.iter().all(|one| !(one.made.is_empty() && one.posts.is_empty())), "both took part");
    store.close().await;
}
