//! Reads what a client needs of NorFab's `inventory.yaml`: the file is a Jinja template with `env`, its `broker` section
//! says how the broker is reached, and a `scheduler` section, which NorFab itself passes over, which tasks are forbidden.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minijinja::{Environment, UndefinedBehavior};
use serde::Deserialize;
use serde_json::Value;

/// Why an inventory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// The file cannot be read.
    #[error("cannot read the inventory {}; give the folder that holds inventory.yaml, or the broker's endpoint itself", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The template does not render.
    #[error("the inventory {} is not a valid Jinja template; a key with two opening braces in it must stand in a raw block", path.display())]
    Template {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<minijinja::Error>,
    },
    /// The rendered text is not YAML, or of another shape.
    #[error("the inventory {} is not valid YAML: {reason}", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong there.
        reason: String,
    },
    /// The scheduler section says something that is not understood.
    #[error("the inventory {} has a scheduler section that cannot be used: {reason}", path.display())]
    Scheduler {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The broker section lacks its endpoint.
    #[error("the inventory {} has no broker endpoint; add a section \"broker:\" with \"endpoint: tcp://HOST:PORT\"", path.display())]
    NoEndpoint {
        /// The file.
        path: PathBuf,
    },
}

/// How the broker is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// `tcp://HOST:PORT`.
    pub endpoint: String,
    /// Whether the connection is encrypted and authenticated with CURVE.
    pub security: Security,
}

/// How a connection to the broker is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Security {
    /// Not at all.
    Plain,
    /// With CURVE.
    Curve {
        /// The broker's public key in Z85, where the inventory has it; a copy of the broker's own file goes before it.
        shared_key: Option<String>,
    },
}

#[derive(Debug, Default, Deserialize)]
struct Document {
    #[serde(default)]
    broker: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    scheduler: Value,
}

/// Reads `inventory.yaml` in a NorFab folder.
///
/// # Errors
/// [`InventoryError`], which names the file and what to do.
pub fn read_inventory(folder: &Path) -> Result<BrokerAddress, InventoryError> {
    let path = file(folder);
    address(&path, read(&path)?)
}

/// Reads which tasks `inventory.yaml` in a NorFab folder forbids, for [`Limits`](crate::Limits): the patterns
/// `SERVICE:TASK`, either part of which may be `*`, below `scheduler: forbidden_tasks:`. Without a file there are none.
///
/// # Errors
/// [`InventoryError`], which names the file and what to do.
pub fn read_forbidden_tasks(folder: &Path) -> Result<Vec<String>, InventoryError> {
    let path = file(folder);
    match read(&path) {
        Ok(document) => {
            forbidden_tasks(document.scheduler).map_err(|reason| InventoryError::Scheduler { path, reason })
        }
        Err(InventoryError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("inventory.yaml")
}

fn read(path: &Path) -> Result<Document, InventoryError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| InventoryError::Read { path: path.to_owned(), source })?;
    let env =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    parse(path, &text, env)
}

fn parse(path: &Path, text: &str, env: impl IntoIterator<Item = (String, String)>) -> Result<Document, InventoryError> {
    let rendered = render(text, env.into_iter().collect())
        .map_err(|source| InventoryError::Template { path: path.to_owned(), source: Box::new(source) })?;
    let document: Option<Document> = serde_saphyr::from_str(&rendered)
        .map_err(|error| InventoryError::Yaml { path: path.to_owned(), reason: first_line(&error.to_string()) })?;
    Ok(document.unwrap_or_default())
}

fn address(path: &Path, document: Document) -> Result<BrokerAddress, InventoryError> {
    let yaml = |reason: String| InventoryError::Yaml { path: path.to_owned(), reason };
    let broker = document.broker.unwrap_or_default();
    let text_of = |key: &str| match broker.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(yaml(format!("broker: {key} must be a text"))),
    };
    let endpoint = text_of("endpoint")?
        .filter(|endpoint| !endpoint.is_empty())
        .ok_or_else(|| InventoryError::NoEndpoint { path: path.to_owned() })?;
    // NorFab turns CURVE off by a YAML false only; 0 and null leave it on.
    let security = if broker.get("zmq_auth") == Some(&Value::Bool(false)) {
        Security::Plain
    } else {
        Security::Curve { shared_key: text_of("shared_key")? }
    };
    Ok(BrokerAddress { endpoint, security })
}

fn forbidden_tasks(scheduler: Value) -> Result<Vec<String>, String> {
    let mut settings = match scheduler {
        Value::Null => return Ok(Vec::new()),
        Value::Object(settings) => settings,
        _ => return Err("it must be a mapping, with the key forbidden_tasks".to_owned()),
    };
    let tasks = settings.remove("forbidden_tasks").unwrap_or_default();
    if let Some(unknown) = settings.keys().next() {
        return Err(format!("its key {unknown:?} is unknown; it has forbidden_tasks only"));
    }
    match tasks {
        Value::Null => Ok(Vec::new()),
        Value::Array(patterns) => patterns.into_iter().map(pattern).collect(),
        _ => Err("forbidden_tasks must be a list of texts SERVICE:TASK".to_owned()),
    }
}

/// A pattern that can match something: a name, or `*` for any, on both sides of a colon.
fn pattern(given: Value) -> Result<String, String> {
    let is_part = |part: &str| part == "*" || !(part.is_empty() || part.contains('*') || part.trim() != part);
    match given {
        Value::String(text) if text.split_once(':').is_some_and(|(of, task)| is_part(of) && is_part(task)) => Ok(text),
        other => Err(format!(
            "{other} of forbidden_tasks is no pattern; write \"SERVICE:TASK\", with * in place of a name for any"
        )),
    }
}

fn render(text: &str, env: BTreeMap<String, String>) -> Result<String, minijinja::Error> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Lenient);
    // Inventories are written for Python's Jinja: env.get("NAME", "default") is common in them.
    engine.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    engine.render_str(text, minijinja::context! { env })
}

/// A YAML error goes on with a picture of the place, which may hold a key.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Result<Document, InventoryError> {
        parse(Path::new("inventory.yaml"), text, [("BROKER_PORT".to_owned(), "5555".to_owned())])
    }

    fn read(text: &str) -> Result<BrokerAddress, InventoryError> {
        address(Path::new("inventory.yaml"), document(text)?)
    }

    /// What a scheduler section forbids, or what is wrong with it.
    #[track_caller]
    fn forbids(section: &str, expected: Result<&[&str], &str>) {
        let text = format!("broker: {{endpoint: 'tcp://h:1'}}\nscheduler: {section}");
        let read = forbidden_tasks(document(&text).expect(section).scheduler);
        match (read, expected) {
            (Ok(patterns), Ok(expected)) => assert_eq!(patterns, expected, "{section}"),
            (Err(reason), Err(part)) => assert!(reason.contains(part), "{section}: {reason}"),
            (read, _) => panic!("{section}: {read:?}"),
        }
    }

    #[test]
    fn forbidden_tasks_are_patterns() {
        forbids("", Ok(&[]));
        forbids("{}", Ok(&[]));
        forbids("{forbidden_tasks: }", Ok(&[]));
        forbids("{forbidden_tasks: []}", Ok(&[]));
        forbids(
            "{forbidden_tasks: ['nornir:reboot', '*:delete', \"netbox:*\"]}",
            Ok(&["nornir:reboot", "*:delete", "netbox:*"]),
        );
        forbids("\n  forbidden_tasks:\n    - nornir:cfg", Ok(&["nornir:cfg"]));
        forbids("[a]", Err("it must be a mapping"));
        forbids("{forbiden_tasks: []}", Err("its key \"forbiden_tasks\" is unknown"));
        forbids("{forbidden_tasks: 'nornir:cfg'}", Err("must be a list of texts SERVICE:TASK"));
        for (wrong, told) in [
            ("nornir", "\"nornir\""),
            ("7", "7"),
            ("{nornir: cfg}", "{\"nornir\":\"cfg\"}"),
            ("'nornir:cf*'", "\"nornir:cf*\""),
            ("'nornir:'", "\"nornir:\""),
            ("':cfg'", "\":cfg\""),
            ("'nornir: cfg'", "\"nornir: cfg\""),
        ] {
            forbids(
                &format!("{{forbidden_tasks: [{wrong}]}}"),
                Err(&format!("{told} of forbidden_tasks is no pattern")),
            );
        }
    }

    #[track_caller]
    fn check(text: &str, endpoint: &str, security: Security) {
        assert_eq!(read(text).expect(text), BrokerAddress { endpoint: endpoint.into(), security });
    }

    #[track_caller]
    fn refuses(text: &str, part: &str) {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn curve_is_the_default() {
        let curve = |key: Option<&str>| Security::Curve { shared_key: key.map(str::to_owned) };
        check("broker:\n  endpoint: tcp://h:1\n", "tcp://h:1", curve(None));
        check("broker: {endpoint: 'tcp://h:1', shared_key: 'a%{b=#'}", "tcp://h:1", curve(Some("a%{b=#")));
        check("broker: {endpoint: 'tcp://h:1', zmq_auth: null}", "tcp://h:1", curve(None));
        check("broker: {endpoint: 'tcp://h:1', zmq_auth: 0}", "tcp://h:1", curve(None));
        check("broker: {endpoint: 'tcp://h:1', zmq_auth: true}", "tcp://h:1", curve(None));
        check("broker: {endpoint: 'tcp://h:1', zmq_auth: false}\nworkers: {a: [b]}", "tcp://h:1", Security::Plain);
    }

    #[test]
    fn templates() {
        let plain = ", zmq_auth: false}";
        check(
            &format!("broker: {{endpoint: 'tcp://h:{{{{ env.BROKER_PORT }}}}'{plain}"),
            "tcp://h:5555",
            Security::Plain,
        );
        check(
            &format!("broker: {{endpoint: 'tcp://h:{{{{ env.get(\"NONE\", \"77\") }}}}'{plain}"),
            "tcp://h:77",
            Security::Plain,
        );
        check(
            "{% if env.BROKER_PORT %}broker: {endpoint: 'tcp://x:1', zmq_auth: false}{% endif %}",
            "tcp://x:1",
            Security::Plain,
        );
    }

    #[test]
    fn bad_inventories_are_named() {
        refuses("", "no broker endpoint");
        refuses("broker:\n", "no broker endpoint");
        refuses("broker: {endpoint: ''}", "no broker endpoint");
        refuses("broker: {endpoint: 5555}", "broker: endpoint must be a text");
        refuses("broker: [1]", "not valid YAML");
        refuses("broker: {endpoint: [", "not valid YAML");
        refuses("broker: {{ env.", "not a valid Jinja template");
        let error = read_inventory(Path::new("no-such-folder")).expect_err("missing").to_string();
        assert!(error.contains("cannot read the inventory"), "{error}");
    }
}
