//! The README says what the code does.

use std::collections::BTreeMap;

use oncepay::http::problem::{ProblemKind, RetryWith};

const README: &str = include_str!("../../README.md");
const ENV_EXAMPLE: &str = include_str!("../../.env.example");

/// The rows of the table whose head begins with `first`, without their markup.
fn table(first: &str) -> Vec<Vec<String>> {
    let head = format!("| {first} |");
    README
        .lines()
        .skip_while(|line| !line.starts_with(&head))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells
                .map(|cell| cell.trim().trim_matches('`').to_owned())
                .collect()
        })
        .collect()
}

#[test]
fn the_problem_table_is_the_catalogue() {
    let expected: Vec<Vec<String>> = ProblemKind::ALL
        .iter()
        .map(|kind| {
            let entry = kind.entry();
            let retry_with = match entry.retry_with {
                RetryWith::SameKey => "same key",
                RetryWith::NewKey => "new key",
                RetryWith::Never => "never",
            };
            let retryable = if entry.retry_after.is_some() {
                "yes"
            } else {
                "no"
            };
            let status = entry.status.as_u16().to_string();
            vec![
                status,
                entry.code.to_owned(),
                retry_with.to_owned(),
                retryable.to_owned(),
            ]
        })
        .collect();

    let documented: Vec<Vec<String>> = table("status")
        .into_iter()
        .map(|row| row[..4].to_vec())
        .collect();

    assert_eq!(documented, expected);
}

/// `.env.example` is compared with the command line by a test of `config`.
#[test]
fn the_settings_table_is_the_example_file() {
    let example: BTreeMap<&str, &str> = ENV_EXAMPLE
        .lines()
        .filter_map(|line| line.trim_start_matches("# ").split_once('='))
        .filter(|(name, _)| {
            name.bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_uppercase())
        })
        .collect();

    let documented = table("variable");

    let names: Vec<&str> = documented.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names.len(), example.len());
    for row in &documented {
        let given = example.get(row[0].as_str());
        let given = given.unwrap_or_else(|| panic!("{} is no setting", row[0]));
        let has_no_default = ENV_EXAMPLE.contains(&format!("# {}=", row[0]));
        assert!(
            has_no_default || row[1] == *given,
            "{}: {} or {given}",
            row[0],
            row[1]
        );
    }
}
