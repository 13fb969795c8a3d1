//! The one way to print an error: our own errors never repeat their source in `Display`.

use std::error::Error;

/// The error and what caused it, from the outside in: `cannot migrate: connection refused`.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        // Libraries (sqlx is one) do repeat their source; once is enough.
        if !last.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        last = said;
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot pay")]
    struct Outer(#[source] Middle);

    #[derive(Debug, thiserror::Error)]
    #[error("the library failed: {0}")]
    struct Middle(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("connection refused")]
    struct Inner;

    #[test]
    fn every_cause_is_named_once_even_where_a_library_repeats_it() {
        let chain = error_chain(&Outer(Middle(Inner)));

        assert_eq!(chain, "cannot pay: the library failed: connection refused");
    }
}
