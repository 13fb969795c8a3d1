//! The process dies at every line of a step with an effect; whoever comes next finds either
//! nothing or all of it, and the journal never has a second line.

use std::sync::Arc;

use chrono::DateTime;

use super::*;
use crate::{
    clock::SystemClock,
    gateways::{
        Authorize, Capture, Gateway, GatewayKey, GatewayReference, Outcome,
        sandbox::{Sandbox, request::Request, send},
    },
    payments::{currency::Currency, model::CaptureMethod, money::Money},
};

/// Where the process dies, in the order of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Death {
    InsideTheIntent,
    AfterTheIntent,
    InsideTheLine,
    AfterTheLine,
    InsideAnEntry,
    AfterTheLinkOfAnEntry,
    AfterOneEntry,
    AfterAllEntries,
}

const DEATHS: [Death; 8] = [
    Death::InsideTheIntent,
    Death::AfterTheIntent,
    Death::InsideTheLine,
    Death::AfterTheLine,
    Death::InsideAnEntry,
    Death::AfterTheLinkOfAnEntry,
    Death::AfterOneEntry,
    Death::AfterAllEntries,
];

/// A ledger whose process dies inside the commit.
#[derive(Debug)]
struct Dying<'a> {
    locked: Locked<'a>,
    death: Death,
}

impl Dying<'_> {
    fn die(&self, intent: &Intent) -> io::Result<()> {
        let folder = self.locked.folder;
        let half = |text: &[u8]| text[..text.len() / 2].to_vec();
        if self.death == Death::InsideTheIntent {
            return fs::write(folder.intent_path(), half(&serde_json::to_vec(intent)?));
        }
        folder.announce(intent)?;
        if self.death == Death::AfterTheIntent {
            return Ok(());
        }
        if self.death == Death::InsideTheLine {
            let line = half(&serde_json::to_vec(&intent.effect)?);
            let path = folder.path.join(journal::FILE_NAME);
            return File::options().append(true).open(path)?.write_all(&line);
        }
        folder.execute(intent)?;
        let (name, entry) = &intent.entries[0];
        let aside = folder.path.join("keys").join("next");
        match self.death {
            Death::InsideAnEntry => fs::write(aside, half(&serde_json::to_vec(entry)?)),
            Death::AfterTheLinkOfAnEntry => {
                folder.write(name, entry)?;
                fs::hard_link(folder.key_path(name), aside)
            }
            Death::AfterOneEntry => folder.write(name, entry),
            Death::AfterAllEntries => folder.apply(intent),
            _ => Ok(()),
        }
    }
}

impl Ledger for Dying<'_> {
    fn entry(&self, name: &Name) -> io::Result<Option<Entry>> {
        self.locked.entry(name)
    }

    fn entries(&self) -> io::Result<Vec<(Name, Entry)>> {
        self.locked.entries()
    }

    fn keep(&mut self, name: &Name, entry: Entry) -> io::Result<()> {
        self.locked.keep(name, entry)
    }

    fn commit(&mut self, effect: Line, entries: Vec<(Name, Entry)>) -> io::Result<()> {
        self.die(&Intent { effect, entries })?;
        Err(io::Error::other("the process died here"))
    }

    fn note(&mut self, line: &Line) -> io::Result<()> {
        self.locked.note(line)
    }
}

fn die(path: &Path, request: &Request, death: Death) {
    let folder = Folder::open(path).unwrap();
    let locked = folder.lock().unwrap();
    let mut ledger = Dying { locked, death };

    send::arrive(&mut ledger, request, DateTime::UNIX_EPOCH).unwrap_err();
}

fn money(amount_minor: i64) -> Money {
    let currency = Currency::from_code("EUR").unwrap();
    Money {
        amount_minor,
        currency,
    }
}

fn authorize() -> Authorize {
    Authorize {
        gateway_key: GatewayKey::new("authorize"),
        money: money(1999),
        payment_method: "pm_card_visa".to_owned(),
        capture_method: CaptureMethod::Manual,
        description: None,
    }
}

fn sandbox(path: &Path) -> Sandbox {
    Sandbox::in_folder(path, Arc::new(SystemClock)).unwrap()
}

fn effects_of(path: &Path, gateway_key: &str) -> usize {
    let lines = journal::read(path.join(journal::FILE_NAME)).unwrap();
    let effects = journal::effects(&lines);
    effects
        .get(&GatewayKey::new(gateway_key))
        .copied()
        .unwrap_or(0)
}

#[tokio::test]
async fn an_authorisation_that_died_anywhere_has_one_effect() {
    for death in DEATHS {
        let folder = tempfile::tempdir().unwrap();
        die(folder.path(), &Request::from(&authorize()), death);
        let sandbox = sandbox(folder.path());
        let survived = usize::from(death >= Death::AfterTheLine);
        assert_eq!(
            effects_of(folder.path(), "authorize"),
            survived,
            "{death:?}"
        );

        let first = sandbox.authorize(&authorize()).await;
        let second = sandbox.authorize(&authorize()).await;

        assert!(
            matches!(first, Outcome::Approved { .. }),
            "{death:?}: {first:?}"
        );
        assert_eq!(first, second, "{death:?}");
        assert_eq!(effects_of(folder.path(), "authorize"), 1, "{death:?}");
        assert!(!folder.path().join("intent.json").exists(), "{death:?}");
    }
}

/// A capture changes two entries, its own and the authorisation's: both or none.
#[tokio::test]
async fn a_capture_that_died_anywhere_took_the_money_once() {
    for death in DEATHS {
        let folder = tempfile::tempdir().unwrap();
        let alive = sandbox(folder.path());
        alive.authorize(&authorize()).await;
        let reference = Name::of("authorize").reference(journal::Call::Authorize);
        let capture = |key: &str| Capture {
            gateway_key: GatewayKey::new(key),
            authorization: GatewayReference(reference.clone()),
            money: money(500),
        };
        die(folder.path(), &Request::from(&capture("capture")), death);

        // Not a new one: a process that was running all the time must see it as well.
        let again = alive.capture(&capture("capture")).await;
        let other = alive.capture(&capture("another key")).await;

        assert!(
            matches!(again, Outcome::Approved { .. }),
            "{death:?}: {again:?}"
        );
        assert!(
            matches!(&other, Outcome::Declined(decline) if decline.code == "already-captured"),
            "{death:?}: {other:?}"
        );
        assert_eq!(effects_of(folder.path(), "capture"), 1, "{death:?}");
        assert_eq!(effects_of(folder.path(), "another key"), 0, "{death:?}");
    }
}
