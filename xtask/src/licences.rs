//! Every dependency's licence against those that `deny.toml` allows, and its source against the registry.
//!
//! `cargo deny` checks more; it takes minutes to compile and is run where it is installed. This is the part that must hold
//! everywhere.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{Faults, spdx};

/// The faults, and a summary for when there are none.
pub fn check(root: &Path) -> Result<(Faults, String)> {
    let deny = fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let allowed = allowed_licences(&deny)?;
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata wrote no JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let faults: Faults = packages.iter().filter_map(|package| fault(package, &allowed)).collect();
    Ok((faults, format!("licences: {} packages, {} licences allowed", packages.len(), allowed.len())))
}

/// The list `allow` in the section `[licenses]`.
fn allowed_licences(deny: &str) -> Result<Vec<String>> {
    let section = deny.split("\n[").find(|section| section.trim_start_matches('[').starts_with("licenses]"));
    let list = section
        .and_then(|section| section.split_once("\nallow = ["))
        .and_then(|(_, rest)| rest.split_once(']'))
        .context("deny.toml has no list `allow = [..]` in [licenses]")?
        .0;
    let without_comments: String =
        list.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
    let allowed: Vec<String> = without_comments.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    ensure!(!allowed.is_empty(), "deny.toml allows no licence");
    Ok(allowed)
}

fn fault(package: &Value, allowed: &[String]) -> Option<String> {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let name = format!("{} {}", text("name"), text("version"));
    match package["source"].as_str() {
        Some(source) if !source.starts_with("registry+") => {
            return Some(format!("{name}: comes from {source}, not from the registry"));
        }
        _ => {}
    }
    match spdx::is_allowed(text("license"), &|licence| allowed.iter().any(|one| one == licence)) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name}: its licence {:?} is not allowed by deny.toml", text("license"))),
        Err(error) => Some(format!("{name}: its licence {:?} can't be read: {error}", text("license"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DENY: &str = "[graph]\nall-features = true\n[licenses]\n# why\nallow = [\n  \"MIT\", # \"GPL-3.0\"\n  \"Apache-2.0 WITH LLVM-exception\",\n]\n[bans]\nallow = [\"x\"]\n";

    #[test]
    fn the_list_of_deny_toml_is_read() {
        assert_eq!(allowed_licences(DENY).unwrap(), ["MIT", "Apache-2.0 WITH LLVM-exception"]);
        assert!(allowed_licences("[bans]\nallow = [\"x\"]\n").is_err());
    }

    #[test]
    fn faults_name_the_package() {
        let package = |licence: &str, source: Option<&str>| {
            let package = json!({"name": "p", "version": "1.0.0", "license": licence, "source": source});
            fault(&package, &allowed_licences(DENY).unwrap())
        };
        assert_eq!(package("MIT OR GPL-3.0", Some("registry+x")), None);
        assert_eq!(package("MIT", None), None);
        assert!(package("GPL-3.0", Some("registry+x")).unwrap().starts_with("p 1.0.0: its licence"));
        assert!(package("MIT", Some("git+x")).unwrap().contains("not from the registry"));
        assert!(package("", Some("registry+x")).unwrap().contains("can't be read"));
    }
}
