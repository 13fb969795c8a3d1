//! What must not be seen, and what must not grow.

use super::Breach;
use crate::chaos::{
    cluster::{CONNECTIONS, SERVICES},
    evidence::Evidence,
};

/// A card number that a client sends by mistake.
pub const CARD_NUMBER: &str = "4242424242424242";

/// D14.
const MEMORY_MIB_MAX: u64 = 150;

/// A killed service leaves its sessions to the server, which ends them when it next looks: for that
/// moment there are those of the one before.
const GENERATIONS: usize = 2;

/// I17: no secret, no key in the clear, no card number in any log.
pub(super) fn nothing_secret_is_logged(evidence: &Evidence) -> Vec<Breach> {
    let keys = evidence.orders.iter().map(|order| order.key.as_str());
    // The part of an API key that is shown in lists is no secret.
    let secrets = evidence.secrets.iter().map(|secret| {
        let shown = secret.len() / 2;
        secret.get(shown..).unwrap_or(secret)
    });
    keys.chain(secrets)
        .chain([CARD_NUMBER])
        .filter_map(|secret| {
            let line = evidence.log.lines().find(|line| line.contains(secret))?;
            Some(Breach {
                invariant: "I17",
                order: None,
                detail: format!("{secret} is in the log: {line}"),
            })
        })
        .collect()
}

/// I19.
pub(super) fn bounded(evidence: &Evidence) -> Vec<Breach> {
    let connections_max = SERVICES * CONNECTIONS * GENERATIONS;
    let connections = usize::try_from(evidence.connections_max).unwrap();
    let connections = (connections > connections_max)
        .then(|| format!("{connections} connections, more than {connections_max}"));
    let memory = (evidence.memory_mib_max > MEMORY_MIB_MAX)
        .then(|| format!("{} MiB of memory", evidence.memory_mib_max));
    connections
        .into_iter()
        .chain(memory)
        .map(|detail| Breach {
            invariant: "I19",
            order: None,
            detail,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::check::sample::paid;

    #[test]
    fn a_secret_in_the_log_is_found() {
        for secret in ["sk_live_0123456789abcdef", "chaos-key", CARD_NUMBER] {
            let mut evidence = paid();
            "chaos-key".clone_into(&mut evidence.orders[0].key);
            evidence.secrets = vec!["sk_live_0123456789abcdef".to_owned()];
            evidence.log = format!("{{\"message\":\"paid with {secret}\"}}\n");

            let breaches = nothing_secret_is_logged(&evidence);

            assert_eq!(breaches.len(), 1, "{secret}");
            assert_eq!(breaches[0].invariant, "I17");
        }
    }

    #[test]
    fn more_connections_or_memory_than_allowed_are_found() {
        let mut evidence = paid();
        evidence.connections_max = 33;
        evidence.memory_mib_max = MEMORY_MIB_MAX + 1;

        assert_eq!(bounded(&evidence).len(), 2);
    }
}
