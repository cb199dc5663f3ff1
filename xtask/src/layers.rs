//! Which crate may know which: the table of docs/architecture.md, checked against the manifests.

use anyhow::{Result, bail};

use crate::workspace::{self, Dependency, Kind, Package};

/// One crate: the own crates it may depend on, and the foreign ones that it must not know.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
    must_not_know: &'static [&'static str],
}

const ZEROMQ: &str = "zeromq";
const CURVE: &str = "omq-tokio";
const SQL: &str = "sqlx";

/// The table, from what knows nothing to what knows all.
#[rustfmt::skip]
const LAYERS: &[Layer] = &[
    Layer { name: "norfab-model", may_use: &[],
            must_not_know: &["tokio", SQL, ZEROMQ, CURVE, "tracing", "log", "chrono"] },
    Layer { name: "norfab-store", may_use: &["norfab-model"],
            must_not_know: &[ZEROMQ, CURVE] },
    Layer { name: "norfab-nfp", may_use: &["norfab-model"],
            must_not_know: &[SQL] },
    Layer { name: "norfab-dispatch", may_use: &["norfab-model"],
            must_not_know: &[SQL, ZEROMQ, CURVE] },
    Layer { name: "norfab-client", may_use: &["norfab-model", "norfab-store", "norfab-nfp", "norfab-dispatch"],
            must_not_know: &["clap", "comfy-table", "indicatif", "crossterm"] },
    Layer { name: "norfab-loopback", may_use: &["norfab-model", "norfab-nfp"],
            must_not_know: &[SQL] },
    Layer { name: "norfab-cli", may_use: &["norfab-client", "norfab-loopback"],
            must_not_know: &[SQL, ZEROMQ, CURVE] },
    Layer { name: "norfab-example-memory-store", may_use: &["norfab-client", "norfab-loopback"],
            must_not_know: &[SQL, ZEROMQ, CURVE] },
    Layer { name: "norfab-tests", may_use: &["norfab-client", "norfab-cli", "norfab-loopback"],
            must_not_know: &[] },
    Layer { name: "norfab-sim", may_use: &["norfab-model", "norfab-store", "norfab-dispatch"],
            must_not_know: &[SQL, ZEROMQ, CURVE] },
    Layer { name: "norfab-benches", may_use: &["norfab-model", "norfab-store", "norfab-nfp", "norfab-dispatch", "norfab-client", "norfab-loopback", "norfab-tests"],
            must_not_know: &[] },
    Layer { name: "norfab-fuzz-targets", may_use: &["norfab-model", "norfab-store", "norfab-nfp", "norfab-client"],
            must_not_know: &[] },
    Layer { name: "norfab-oracle", may_use: &["norfab-model"], must_not_know: &[] },
    Layer { name: "xtask", may_use: &[], must_not_know: &[] },
];

/// What the tests of any crate may use besides.
const FOR_TESTS: &[&str] = &["norfab-store", "norfab-loopback"];
/// What the end-to-end tests may use besides: they look at the wire with the product's own frames.
const FOR_END_TO_END_TESTS: (&str, &[&str]) = ("norfab-tests", &["norfab-nfp"]);

/// Fails when a manifest breaks the table.
pub(crate) fn check() -> Result<()> {
    let found = violations(&workspace::metadata()?.packages);
    if !found.is_empty() {
        bail!("layers:{}", found.iter().map(|line| format!("\n  {line}")).collect::<String>());
    }
    Ok(())
}

/// The dependencies that break the table, a line for each.
fn violations(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(|package| package_violations(package, packages)).collect()
}

fn package_violations(package: &Package, packages: &[Package]) -> Vec<String> {
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name) else {
        return vec![format!("{} has no row in the table of xtask/src/layers.rs", package.name)];
    };
    package.dependencies.iter().filter_map(|dependency| violation(package, layer, dependency, packages)).collect()
}

fn violation(package: &Package, layer: &Layer, dependency: &Dependency, packages: &[Package]) -> Option<String> {
    let (name, used) = (&package.name, dependency.name.as_str());
    let Some(own) = packages.iter().find(|package| package.name == used) else {
        let forbidden = dependency.kind != Kind::Dev && layer.must_not_know.contains(&used);
        return forbidden.then(|| format!("{name} must not know {used}"));
    };
    if !may_use(layer, dependency) {
        return Some(format!("{name} must not depend on {used}"));
    }
    (package.is_published() && !own.is_published()).then(|| format!("{name} is published, {used} is not"))
}

fn may_use(layer: &Layer, dependency: &Dependency) -> bool {
    let used = dependency.name.as_str();
    let for_tests = dependency.kind == Kind::Dev
        && (FOR_TESTS.contains(&used)
            || (layer.name == FOR_END_TO_END_TESTS.0 && FOR_END_TO_END_TESTS.1.contains(&used)));
    layer.may_use.contains(&used) || for_tests
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::workspace::Metadata;

    fn package(name: &str, publish: &Value, dependencies: &[(&str, Value)]) -> Value {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        json!({
            "name": name, "version": "0.1.0", "manifest_path": "/x/Cargo.toml", "publish": publish,
            "dependencies": dependencies, "targets": [],
        })
    }

    /// Plants dependencies in one crate of an otherwise empty workspace.
    #[track_caller]
    fn check(name: &str, dependencies: &[(&str, Value)], expected: &[&str]) {
        let others = LAYERS.iter().map(|layer| layer.name).filter(|other| *other != name);
        let unpublished = ["xtask", "norfab-tests", "norfab-example-memory-store", "norfab-sim", "norfab-oracle"];
        let publish = |name: &str| if unpublished.contains(&name) { json!([]) } else { Value::Null };
        let mut packages: Vec<Value> = others.map(|other| package(other, &publish(other), &[])).collect();
        packages.push(package(name, &publish(name), dependencies));
        let json = json!({"packages": packages, "target_directory": "/target"}).to_string();
        assert_eq!(violations(&Metadata::parse(json.as_bytes()).unwrap().packages), expected);
    }

    #[test]
    fn the_workspace_itself_keeps_the_table() {
        super::check().unwrap();
    }

    #[test]
    fn what_the_table_allows() {
        check("norfab-store", &[("norfab-model", Value::Null), ("sqlx", Value::Null)], &[]);
        check("norfab-client", &[("norfab-dispatch", Value::Null), ("norfab-loopback", json!("dev"))], &[]);
        check("norfab-tests", &[("norfab-cli", json!("dev")), ("norfab-nfp", json!("dev"))], &[]);
    }

    #[test]
    fn a_lower_crate_that_reaches_up() {
        check("norfab-model", &[("norfab-store", Value::Null)], &["norfab-model must not depend on norfab-store"]);
    }

    #[test]
    fn two_crates_side_by_side() {
        check("norfab-dispatch", &[("norfab-nfp", Value::Null)], &["norfab-dispatch must not depend on norfab-nfp"]);
    }

    #[test]
    fn a_build_script_counts_like_the_crate() {
        check("norfab-nfp", &[("norfab-store", json!("build"))], &["norfab-nfp must not depend on norfab-store"]);
    }

    #[test]
    fn tests_may_add_the_store_and_the_loopback_only() {
        check("norfab-dispatch", &[("norfab-store", json!("dev")), ("norfab-loopback", json!("dev"))], &[]);
        check(
            "norfab-dispatch",
            &[("norfab-client", json!("dev"))],
            &["norfab-dispatch must not depend on norfab-client"],
        );
    }

    #[test]
    fn foreign_crates_that_a_layer_must_not_know() {
        check("norfab-model", &[("tokio", Value::Null)], &["norfab-model must not know tokio"]);
        check("norfab-model", &[("tracing", Value::Null)], &["norfab-model must not know tracing"]);
        check("norfab-store", &[("omq-tokio", Value::Null)], &["norfab-store must not know omq-tokio"]);
        check("norfab-nfp", &[("sqlx", Value::Null)], &["norfab-nfp must not know sqlx"]);
        check("norfab-dispatch", &[("zeromq", Value::Null)], &["norfab-dispatch must not know zeromq"]);
        check("norfab-loopback", &[("sqlx", json!("build"))], &["norfab-loopback must not know sqlx"]);
        check("norfab-cli", &[("sqlx", Value::Null)], &["norfab-cli must not know sqlx"]);
    }

    #[test]
    fn tests_may_know_foreign_crates() {
        check("norfab-model", &[("tokio", json!("dev"))], &[]);
    }

    #[test]
    fn a_crate_that_the_table_does_not_name() {
        check("norfab-extra", &[], &["norfab-extra has no row in the table of xtask/src/layers.rs"]);
    }

    #[test]
    fn nothing_published_needs_what_is_not() {
        let json = json!({"packages": [
            package("norfab-client", &Value::Null, &[("norfab-model", Value::Null)]),
            package("norfab-model", &json!([]), &[]),
        ], "target_directory": "/target"});
        let packages = Metadata::parse(json.to_string().as_bytes()).unwrap().packages;
        assert_eq!(violations(&packages), ["norfab-client is published, norfab-model is not"]);
    }
}
