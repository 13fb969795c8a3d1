//! Finds PostgreSQL's programs.
//!
//! A folder counts only if both programs that we start are in it and executable: Debian, for one,
//! puts the clients on `PATH` but neither `initdb` nor `postgres`.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};

use super::error::EmbeddedError;

/// Where packages put the programs: a parent, and how the name of a version's folder begins.
const USUAL_FOLDERS: [(&str, &str); 4] = [
    ("usr/lib/postgresql", ""),
    ("opt/homebrew/opt", "postgresql"),
    ("usr/local/opt", "postgresql"),
    ("usr", "pgsql-"),
];

/// A folder that holds `initdb` and `postgres`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    bin: PathBuf,
}

impl Programs {
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    pub fn initdb(&self) -> PathBuf {
        self.bin.join("initdb")
    }

    pub fn postgres(&self) -> PathBuf {
        self.bin.join("postgres")
    }

    fn within(bin: PathBuf) -> Option<Self> {
        let programs = Self { bin };
        let complete = is_executable(&programs.initdb()) && is_executable(&programs.postgres());
        complete.then_some(programs)
    }
}

/// Looks in `pg_bin` and nowhere else where it is given; else in the folders of `path` (the value
/// of `PATH`), in what `pg_config --bindir` says, and in the usual folders, newest version first.
///
/// A `pg_bin` without the programs is an error and not passed over: who names a version does not
/// want another one.
pub fn find(pg_bin: Option<&Path>, path: Option<&OsStr>) -> Result<Programs, EmbeddedError> {
    find_below(Path::new("/"), pg_bin, path)
}

fn find_below(
    root: &Path,
    pg_bin: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<Programs, EmbeddedError> {
    if let Some(bin) = pg_bin {
        return absolute(bin)
            .and_then(Programs::within)
            .ok_or_else(|| EmbeddedError::NoProgramsIn(bin.to_owned()));
    }
    let on_path: Vec<PathBuf> = path.map(env::split_paths).into_iter().flatten().collect();
    on_path
        .iter()
        .filter_map(|folder| absolute(folder).and_then(Programs::within))
        .chain(configured(&on_path).and_then(Programs::within))
        .next()
        .or_else(|| usual(root).into_iter().find_map(Programs::within))
        .ok_or(EmbeddedError::NotInstalled)
}

/// The programs are started from another working directory, where a relative path means nothing.
fn absolute(folder: &Path) -> Option<PathBuf> {
    std::path::absolute(folder).ok()
}

/// What the first `pg_config` on the path says.
fn configured(on_path: &[PathBuf]) -> Option<PathBuf> {
    let program = on_path
        .iter()
        .map(|folder| folder.join("pg_config"))
        .find(|program| is_executable(program))?;
    let output = Command::new(program).arg("--bindir").output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let bin = said.trim();
    (output.status.success() && !bin.is_empty()).then(|| PathBuf::from(bin))
}

/// The `bin` folders of the usual places that exist, newest version first.
fn usual(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = USUAL_FOLDERS
        .iter()
        .flat_map(|(parent, prefix)| versions_in(&root.join(parent), prefix))
        .collect();
    found.sort_by(|(left, _), (right, _)| right.cmp(left));
    found.into_iter().map(|(_version, bin)| bin).collect()
}

fn versions_in(parent: &Path, prefix: &str) -> Vec<(Vec<u32>, PathBuf)> {
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = version_of(name.to_str()?.strip_prefix(prefix)?);
            Some((version, entry.path().join("bin")))
        })
        .collect()
}

/// Numbers, not text, because "9.6" is older than "15". A name without a number (Homebrew's plain
/// `postgresql`) is empty and so sorts last: its version is not known.
fn version_of(text: &str) -> Vec<u32> {
    text.trim_start_matches('@')
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use tempfile::TempDir;

    use super::*;

    /// A machine that lives in a temporary folder.
    struct Machine(TempDir);

    impl Machine {
        fn new() -> Self {
            Self(TempDir::new().unwrap())
        }

        fn install(&self, bin: &str) -> PathBuf {
            self.write(bin, "initdb", "#!/bin/sh\n", 0o755);
            self.write(bin, "postgres", "#!/bin/sh\n", 0o755)
        }

        /// Returns the folder that the file is in.
        fn write(&self, folder: &str, name: &str, text: &str, mode: u32) -> PathBuf {
            let folder = self.0.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
            folder
        }

        fn find(&self, pg_bin: Option<&Path>, path: &[&Path]) -> Result<PathBuf, EmbeddedError> {
            let path: OsString = env::join_paths(path).unwrap_or_default();
            find_below(self.0.path(), pg_bin, Some(&path)).map(|programs| programs.bin)
        }
    }

    #[test]
    fn each_place_is_looked_at_before_the_next() {
        let machine = Machine::new();
        let named = machine.install("named");
        let on_path = machine.install("on-path");
        let configured = machine.install("configured");
        let usual = machine.install("usr/lib/postgresql/15/bin");
        let says = format!("#!/bin/sh\necho '{}'\n", configured.display());
        let config = machine.write("config", "pg_config", &says, 0o755);

        let both = [config.as_path(), on_path.as_path()];
        assert_eq!(machine.find(Some(&named), &both).unwrap(), named);
        assert_eq!(machine.find(None, &both).unwrap(), on_path);
        assert_eq!(machine.find(None, &[&config]).unwrap(), configured);
        assert_eq!(machine.find(None, &[]).unwrap(), usual);
    }

    #[test]
    fn the_newest_of_the_usual_folders_wins() {
        let machine = Machine::new();
        let oldest_to_newest = [
            "opt/homebrew/opt/postgresql/bin",
            "usr/lib/postgresql/9.6/bin",
            "usr/local/opt/postgresql@14/bin",
            "usr/lib/postgresql/15/bin",
            "usr/pgsql-16/bin",
            "opt/homebrew/opt/postgresql@17/bin",
        ];

        for bin in oldest_to_newest {
            let installed = machine.install(bin);
            assert_eq!(machine.find(None, &[]).unwrap(), installed);
        }
    }

    #[test]
    fn a_folder_without_both_programs_is_passed_over() {
        let machine = Machine::new();
        let half = machine.write("half", "initdb", "", 0o755);
        let plain = machine.write("plain", "initdb", "", 0o644);
        machine.write("plain", "postgres", "", 0o644);

        let error = machine.find(None, &[&half, &plain]).unwrap_err();
        assert!(matches!(error, EmbeddedError::NotInstalled));
        for way_on in ["install", "docker compose up", "DATABASE_URL"] {
            assert!(error.to_string().contains(way_on), "{error}");
        }
    }

    #[test]
    fn a_named_folder_without_the_programs_is_refused_though_others_exist() {
        let machine = Machine::new();
        machine.install("usr/lib/postgresql/15/bin");
        let empty = machine.write("empty", "README", "", 0o644);

        let error = machine.find(Some(&empty), &[]).unwrap_err();
        assert!(matches!(error, EmbeddedError::NoProgramsIn(bin) if bin == empty));
    }
}
