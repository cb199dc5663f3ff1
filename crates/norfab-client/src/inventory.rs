//! Reads what a client needs of NorFab's `inventory.yaml`: the file is a Jinja template with `env`, and its `broker`
//! section says how the broker is reached.

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
}

/// Reads `inventory.yaml` in a NorFab folder.
///
/// # Errors
/// [`InventoryError`], which names the file and what to do.
pub fn read_inventory(folder: &Path) -> Result<BrokerAddress, InventoryError> {
    let path = folder.join("inventory.yaml");
    let text = std::fs::read_to_string(&path).map_err(|source| InventoryError::Read { path: path.clone(), source })?;
    parse(
        &path,
        &text,
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    )
}

fn parse(
    path: &Path,
    text: &str,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<BrokerAddress, InventoryError> {
    let rendered = render(text, env.into_iter().collect())
        .map_err(|source| InventoryError::Template { path: path.to_owned(), source: Box::new(source) })?;
    let yaml = |reason: String| InventoryError::Yaml { path: path.to_owned(), reason };
    let document: Option<Document> =
        serde_saphyr::from_str(&rendered).map_err(|error| yaml(first_line(&error.to_string())))?;
    let broker = document.and_then(|document| document.broker).unwrap_or_default();
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

    fn read(text: &str) -> Result<BrokerAddress, InventoryError> {
        parse(Path::new("inventory.yaml"), text, [("BROKER_PORT".to_owned(), "5555".to_owned())])
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
