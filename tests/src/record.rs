//! The files that the peer's processes write: what was executed, and what clients sent.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One execution of a task by a worker.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Execution {
    /// The job's UUID.
    pub juuid: String,
    /// The task.
    pub task: String,
    /// The worker that executed it.
    pub worker: String,
    /// When it began, or ended, in seconds since 1970.
    pub time: f64,
}

/// How often each worker executed a job, by the job's UUID and the worker's name.
pub type Tally = BTreeMap<String, BTreeMap<String, usize>>;

/// One message that the broker got from a client. Parts that a short message lacks are empty.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct ClientMessage {
    /// When the broker got it, in seconds since 1970.
    pub time: f64,
    /// The client's name.
    pub client: String,
    /// The command as NFP writes it, `0x04` for a POST.
    #[serde(default)]
    pub command: String,
    /// The service.
    #[serde(default)]
    pub service: String,
    /// The target as it was sent: `all`, `any`, a name, or a JSON array of names.
    #[serde(default)]
    pub target: String,
    /// The job's UUID.
    #[serde(default)]
    pub uuid: String,
    /// Bytes of all frames behind the header.
    pub bytes: u64,
}

impl ClientMessage {
    /// A job is sent.
    pub const POST: &str = "0x04";
    /// A job's result is asked for.
    pub const GET: &str = "0x06";
    /// An answer to an input request.
    pub const PUT: &str = "0x10";
    /// A question to the broker itself.
    pub const MMI: &str = "0x11";
}

/// Counts executions.
pub(crate) fn tally(executions: Vec<Execution>) -> Tally {
    let mut tally = Tally::new();
    for run in executions {
        *tally.entry(run.juuid).or_default().entry(run.worker).or_default() += 1;
    }
    tally
}

/// The instants of each job's POSTs, in seconds since 1970, by the job's UUID.
pub(crate) fn posts(messages: Vec<ClientMessage>) -> BTreeMap<String, Vec<f64>> {
    let mut posts: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for message in messages.into_iter().filter(|message| message.command == ClientMessage::POST) {
        posts.entry(message.uuid).or_default().push(message.time);
    }
    posts
}

/// The lines of a file that another process is writing. A line that is not finished is left for the next time.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("cannot read {}: {error}", path.display()),
    };
    let finished = text.rfind('\n').map_or("", |end| &text[..end]);
    finished.lines().map(|line| parse(line, path)).collect()
}

fn parse<T: DeserializeOwned>(line: &str, path: &Path) -> T {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, workers: &[&str]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let found: Vec<Execution> = read_lines(file.path());
        assert_eq!(found.iter().map(|execution| execution.worker.as_str()).collect::<Vec<_>>(), workers);
    }

    const LINE: &str = r#"{"juuid": "1", "task": "echo", "worker": "w1", "time": 1.5}"#;

    #[test]
    fn every_finished_line_is_read() {
        check(&format!("{LINE}\n{LINE}\n"), &["w1", "w1"]);
    }

    #[test]
    fn a_line_that_is_still_written_is_left() {
        check(&format!("{LINE}\n{{\"juuid\": \"2\""), &["w1"]);
        check("{\"juuid\"", &[]);
    }

    #[test]
    fn executions_are_counted_for_each_job_and_worker() {
        let run = |juuid: &str, worker: &str| Execution {
            juuid: juuid.into(),
            task: "echo".into(),
            worker: worker.into(),
            time: 1.5,
        };
        let counted = tally(vec![run("1", "w1"), run("1", "w2"), run("2", "w1"), run("1", "w1")]);
        let expected = [("1", [("w1", 2), ("w2", 1)].as_slice()), ("2", &[("w1", 1)])];
        let expected = expected.map(|(job, runs)| {
            (job.to_owned(), runs.iter().map(|(worker, times)| ((*worker).to_owned(), *times)).collect())
        });
        assert_eq!(counted, Tally::from(expected));
    }

    #[test]
    fn only_posts_are_posts() {
        let message = |command: &str, time: f64| ClientMessage {
            time,
            client: "c".into(),
            command: command.into(),
            service: "s".into(),
            target: "all".into(),
            uuid: "1".into(),
            bytes: 9,
        };
        let messages = vec![
            message(ClientMessage::POST, 1.0),
            message(ClientMessage::GET, 2.0),
            message(ClientMessage::POST, 3.0),
        ];
        assert_eq!(posts(messages), BTreeMap::from([("1".to_owned(), vec![1.0, 3.0])]));
    }

    #[test]
    fn no_file_yet_is_nothing_yet() {
        assert!(read_lines::<Execution>(Path::new("no such file")).is_empty());
    }
}
