//! A database as a power cut leaves it: a run is recorded write by write, and of what was being written last any sector may
//! be old, new, or never have come. What is opened then is the state after some commit, and after the last one that was
//! acknowledged, or it is said to be damaged; nothing in between, and nothing panics.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Database, add, at, every, id, job};
use norfab_model::{
    Claim, Coalesce, JobFilter, Json, Limits, Link, Materialize, OverlapPolicy, Reply, ReplyKind, RetryPolicy,
    ScheduleFilter, ScheduleStore, Scope, Store,
};
use norfab_store::{SqliteStore, StoreOptions};
use sqlx::{AssertSqlSafe, Connection};

/// Commits of a recorded run.
const STEPS: u64 = 60;

/// Numbers that are the same in each run, by SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

fn log_of(path: &Path) -> PathBuf {
    path.with_file_name("jobs.db-wal")
}

/// The files after a step, and what is in the database then.
#[derive(Clone)]
struct Moment {
    file: Vec<u8>,
    log: Vec<u8>,
    state: String,
    /// Whether the step only wrote the log into the file.
    is_checkpoint: bool,
}

/// A run of everything that writes, a commit a step.
async fn record() -> Vec<Moment> {
    let database = Database::missing();
    let store = database.open_with(StoreOptions::default()).await;
    let mut chance = Chance(20_261_130);
    let mut moments = vec![Moment::of(&database, false).await];
    for step in 0..STEPS {
        let is_checkpoint = step % 7 == 6;
        if is_checkpoint {
            let kinds = ["PASSIVE", "RESTART", "TRUNCATE"];
            database.execute(&format!("PRAGMA wal_checkpoint({})", kinds[chance.below(3)])).await;
        } else {
            write(&store, step, &mut chance).await;
        }
        moments.push(Moment::of(&database, is_checkpoint).await);
    }
    store.close().await;
    moments
}

impl Moment {
    async fn of(database: &Database, is_checkpoint: bool) -> Self {
        let (file, log) = (fs::read(database.path()).unwrap(), fs::read(log_of(&database.path())).unwrap());
        Self { file, log, state: state(database).await.unwrap(), is_checkpoint }
    }
}

/// One commit of any kind.
async fn write(store: &SqliteStore, step: u64, chance: &mut Chance) {
    let now = at(i64::try_from(step).unwrap());
    let name = format!("job-{step}");
    match step % 6 {
        0 => {
            let new = every(1).coalesce(Coalesce::All).overlap_policy(OverlapPolicy::Allow).max_instances(500);
            store.schedule_add(&Limits::default().check_schedule(now, new).unwrap()).await.unwrap();
        }
        1 | 2 => {
            let text = "x".repeat(chance.below(20_000));
            let kwargs = Json::parse(format!("{{\"text\":\"{text}\"}}")).unwrap();
            let new = job(&name).kwargs(kwargs);
            let new = if step.is_multiple_of(2) { new.at(at(1 + i64::try_from(step).unwrap())) } else { new };
            add(store, now, new).await;
        }
        3 => {
            let (limits, claim) = (Limits::default(), Claim::new(now, &Scope::All, 20));
            let claim = Some(&claim).filter(|_| (step / 6).is_multiple_of(2));
            let request = Materialize { now, limits: &limits, budget_left: 1000, batch: 1000, seen: &[], claim };
            let made = store.schedule_materialize_due(request).await.unwrap();
            assert_eq!(made.claimed.is_some(), claim.is_some());
        }
        4 => {
            store.job_release_due(now, &Scope::All, Link::Up).await.unwrap();
            store.job_claim(Claim::new(now, &Scope::All, 20)).await.unwrap();
        }
        _ => {
            let jobs = store.job_unfinished().await.unwrap();
            let result =
                || ReplyKind::Result { worker: "w1".to_owned(), result: Json::parse("{\"failed\":false}").unwrap() };
            let replies = jobs.iter().map(|job| Reply::new(job.uuid.clone(), result())).collect();
            store.job_apply(now, RetryPolicy::default(), replies).await.unwrap();
        }
    }
}

const TABLES: [&str; 5] = ["jobs", "events", "job_schedules", "input_answers", "norfab_settings"];

/// All rows of all tables; or why they cannot be read.
async fn state(database: &Database) -> Result<String, sqlx::Error> {
    let mut connection = database.connect().await;
    let mut state = String::new();
    for table in TABLES {
        let columns =
            format!("SELECT group_concat('quote(' || quote(name) || ')', '||') FROM pragma_table_info('{table}')");
        let columns: Option<String> = sqlx::query_scalar(AssertSqlSafe(columns)).fetch_one(&mut connection).await?;
        let columns = columns.unwrap_or_else(|| "''".to_owned()).replace("quote('", "quote(\"").replace("')", "\")");
        let rows = format!("SELECT {columns} FROM {table} ORDER BY rowid");
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut connection).await?;
        state.extend([table, "\n", &rows.join("\n"), "\n"]);
    }
    connection.close().await?;
    Ok(state)
}

/// Opens what is left as a client does, and gives what is in it.
async fn opened(file: &[u8], log: &[u8], told: &str) -> String {
    let database = Database::with_bytes(file);
    fs::write(log_of(&database.path()), log).unwrap();
    let store = SqliteStore::open(database.path(), &StoreOptions::default()).await;
    let store = store.unwrap_or_else(|error| panic!("{told}: {error:?}"));
    assert_eq!(database.value("(SELECT * FROM pragma_integrity_check)", "").await, "'ok'", "{told}");
    assert_eq!(database.value("(SELECT count(*) FROM pragma_foreign_key_check)", "").await, "0", "{told}");
    let state = state(&database).await.unwrap_or_else(|error| panic!("{told}: {error}"));
    store.close().await;
    state
}

/// Of what was being written, each sector as it was, as it was to be, or never written.
fn torn(old: &[u8], new: &[u8], chance: &mut Chance) -> Vec<u8> {
    let sector = [512, 4096][chance.below(2)];
    // Mostly old, mostly new, half of each, or all that was to be.
    let bias = [1, 3, 5, 9, 10][chance.below(5)];
    let length = match chance.below(3) {
        _ if bias == 10 => new.len(),
        0 => old.len(),
        1 => new.len(),
        _ => old.len().min(new.len()) + chance.below(old.len().abs_diff(new.len()) + 1),
    };
    let mut torn = vec![0; length];
    for at in (0..length).step_by(sector) {
        let source = if chance.below(10) < bias { new } else { old };
        let end = (at + sector).min(length).min(source.len());
        if at < end {
            torn[at..end].copy_from_slice(&source[at..end]);
        } else if chance.below(3) == 0 {
            // What the disk had there before.
            torn[at..(at + sector).min(length)].iter_mut().for_each(|byte| *byte = 0xa5);
        }
    }
    torn
}

/// A log that was being written. When it begins anew, its first bytes are on the disk before any that follow; and it is made
/// shorter as a whole.
fn torn_log(old: &[u8], new: &[u8], chance: &mut Chance) -> Vec<u8> {
    const HEADER: usize = 32;
    if new.len() < old.len() {
        return [old, new][chance.below(2)].to_vec();
    }
    let mut torn = torn(old, new, chance);
    if torn.len() >= HEADER && torn != old {
        torn[..HEADER].copy_from_slice(&new[..HEADER]);
    }
    torn
}

/// The power fails while a commit is written to the log: it is there as a whole, or not at all.
#[tokio::test]
async fn a_commit_that_was_being_written_is_there_or_not() {
    let moments = record().await;
    let mut chance = Chance(1);
    let (mut kept, mut undone) = (0, 0);
    for (number, pair) in moments.windows(2).enumerate().filter(|(_, pair)| !pair[1].is_checkpoint) {
        let [before, after] = pair else { unreachable!() };
        assert!(before.file == after.file, "step {number} was no commit to the log");
        for round in 0..4 {
            let log = torn_log(&before.log, &after.log, &mut chance);
            let told = format!("step {number}, round {round}");
            let state = opened(&after.file, &log, &told).await;
            assert!(state == before.state || state == after.state, "{told}: neither the state before nor after");
            if state == before.state { undone += 1 } else { kept += 1 }
        }
    }
    assert!(kept > 10 && undone > 50, "{kept} kept, {undone} undone");
}

/// The power fails while the log is written into the file, before that is known to be on the disk: nothing changes.
#[tokio::test]
async fn a_checkpoint_that_was_being_written_changes_nothing() {
    let moments = record().await;
    let mut chance = Chance(2);
    let mut cases = 0;
    for (number, pair) in moments.windows(2).enumerate().filter(|(_, pair)| pair[1].is_checkpoint) {
        let [before, after] = pair else { unreachable!() };
        assert!(before.state == after.state, "step {number}");
        for round in 0..8 {
            let told = format!("step {number}, round {round}");
            let file = torn(&before.file, &after.file, &mut chance);
            assert!(opened(&file, &before.log, &told).await == before.state, "{told}");
            // The file is on the disk, and the log is being taken back.
            let log = torn_log(&before.log, &after.log, &mut chance);
            assert!(
                opened(&after.file, &log, &format!("{told}: taken back")).await == before.state,
                "{told}: the log is taken back"
            );
            cases += 2;
        }
    }
    assert!(cases > 100, "{cases}");
}

/// Where less than the disk was waited for, the last commits may be gone: those before them are there, whatever became of the
/// bytes behind, and wherever they begin.
#[tokio::test]
async fn of_a_log_whose_tail_is_lost_the_commits_before_are_left() {
    let moments = record().await;
    // The longest stretch without a checkpoint.
    let first = moments.iter().rposition(|moment| moment.is_checkpoint).unwrap_or(0).saturating_sub(6);
    let stretch: Vec<&Moment> = moments[first..].iter().take_while(|moment| !moment.is_checkpoint).collect();
    let last = stretch.last().unwrap();
    assert!(stretch.len() >= 5, "{}", stretch.len());
    let begin = stretch[0].log.len();
    let mut chance = Chance(3);
    for case in 0..150 {
        let whole = begin + chance.below(last.log.len() - begin + 1);
        let mut log = last.log.clone();
        let told = match case % 4 {
            0 => {
                log.truncate(whole);
                "cut"
            }
            1 => {
                log[whole..].fill(0);
                "zeroed"
            }
            2 => {
                log[whole..].iter_mut().for_each(|byte| *byte ^= 0x5a);
                "garbled"
            }
            _ => {
                let nothing = vec![0; log.len()];
                let torn = torn(&nothing, &log, &mut chance);
                log.truncate(whole);
                log.extend(torn.get(whole..).unwrap_or_default());
                "torn"
            }
        };
        let told = format!("case {case}: {told} after {whole} of {} bytes", last.log.len());
        let state = opened(&last.file, &log, &told).await;
        let reached = stretch.iter().position(|moment| moment.state == state);
        // Nothing before it was touched.
        let safe = stretch.iter().rposition(|moment| moment.log.len() <= whole).unwrap();
        let reached = reached.unwrap_or_else(|| panic!("{told}: the state of no commit"));
        // Two commits may leave the same state.
        assert!(stretch[safe].state == state || reached >= safe, "{told}: {reached}, and {safe} was whole");
    }
}

/// A disk that lost what it had said to have, or whose sectors rot: whatever is opened then answers, or says what is wrong.
#[tokio::test]
async fn what_no_power_cut_leaves_is_told_and_no_panic() {
    let moments = record().await;
    let mut chance = Chance(4);
    let (mut told, mut served) = (0, 0);
    for _ in 0..150 {
        let moment = &moments[chance.below(moments.len())];
        let mut file = moment.file.clone();
        for _ in 0..1 + chance.below(4) {
            let from = chance.below(file.len());
            let to = (from + 1 + chance.below(5000)).min(file.len());
            match chance.below(3) {
                0 => file[from..to].fill(0),
                1 => file[from..to].iter_mut().for_each(|byte| *byte = byte.wrapping_mul(31).wrapping_add(7)),
                _ => file.truncate(from.max(100)),
            }
            if file.len() < 200 {
                break;
            }
        }
        let database = Database::with_bytes(&file);
        if chance.below(2) == 0 {
            fs::write(log_of(&database.path()), &moment.log).unwrap();
        }
        match SqliteStore::open(database.path(), &StoreOptions::default()).await {
            Err(_) => told += 1,
            Ok(store) => {
                let errors = use_it(&store).await;
                if errors.is_empty() {
                    served += 1;
                } else {
                    told += 1;
                }
                assert!(errors.iter().all(|error| !error.is_empty()));
                store.close().await;
            }
        }
    }
    assert!(told > 20 && served > 10, "{told} told, {served} served");
}

/// What a client does with a database; and what it is told.
async fn use_it(store: &SqliteStore) -> Vec<String> {
    let (now, limits) = (at(1000), Limits::default());
    let mut errors = Vec::new();
    let mut note = |error: Option<String>| errors.extend(error);
    note(store.job_list(&JobFilter { limit: 1000, ..JobFilter::default() }).await.err().map(|e| e.to_string()));
    let filter = ScheduleFilter { limit: 1000, ..ScheduleFilter::default() };
    note(store.schedule_list(&filter).await.err().map(|e| e.to_string()));
    note(store.job_detail(&id("job-1")).await.err().map(|e| e.to_string()));
    note(store.event_list(&id("job-1"), 0, 100).await.err().map(|e| e.to_string()));
    note(store.job_recover(now, &Scope::All).await.err().map(|e| e.to_string()));
    note(store.job_release_due(now, &Scope::All, Link::Up).await.err().map(|e| e.to_string()));
    let request = Materialize { now, limits: &limits, budget_left: 1000, batch: 1000, seen: &[], claim: None };
    note(store.schedule_materialize_due(request).await.err().map(|e| e.to_string()));
    note(store.job_claim(Claim::new(now, &Scope::All, 20)).await.err().map(|e| e.to_string()));
    note(store.job_take_polls(now, &Scope::All, now, 100).await.err().map(|e| e.to_string()));
    note(store.stats().await.err().map(|e| e.to_string()));
    errors
}
