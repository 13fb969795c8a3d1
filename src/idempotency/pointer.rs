//! Where in a document something is: a JSON pointer (RFC 6901).
//!
//! Promises: naming a place costs nothing until it is printed, and what is printed may be logged
//! and sent back. Refuses to echo: at a member whose name is a card number, or longer than any
//! name of ours, the pointer stops at the object around it. Otherwise an error would carry card
//! data into logs, or a small body with one long name would come back as a very large answer.

use std::fmt;

use crate::payments::card_number::looks_like_card_number;

/// The longest member name that is printed. Ours have at most 40 characters (metadata).
pub const NAME_CHARS_MAX: usize = 64;

/// A place in a document, as a path from the root.
#[derive(Clone, Copy)]
pub enum Pointer<'a> {
    Root,
    Member(&'a Pointer<'a>, &'a str),
    Element(&'a Pointer<'a>, usize),
}

impl Pointer<'_> {
    pub const fn member<'a>(&'a self, name: &'a str) -> Pointer<'a> {
        Pointer::Member(self, name)
    }

    pub const fn element(&self, index: usize) -> Pointer<'_> {
        Pointer::Element(self, index)
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = Vec::new();
        let mut place = self;
        while let Pointer::Member(parent, _) | Pointer::Element(parent, _) = place {
            steps.push(place);
            place = parent;
        }
        for step in steps.into_iter().rev() {
            match step {
                Pointer::Root => {}
                Pointer::Element(_, index) => write!(f, "/{index}")?,
                Pointer::Member(_, name) if may_be_shown(name) => {
                    write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))?;
                }
                Pointer::Member(..) => break,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn may_be_shown(name: &str) -> bool {
    name.chars().nth(NAME_CHARS_MAX).is_none() && !looks_like_card_number(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(names: &[&str]) -> String {
        match names {
            [] => String::new(),
            [one] => Pointer::Root.member(one).to_string(),
            [one, two, ..] => Pointer::Root.member(one).member(two).to_string(),
        }
    }

    #[test]
    fn names_are_escaped_as_in_rfc_6901() {
        for (names, expected) in [
            (&[][..], ""),
            (&[""], "/"),
            (&["a/b"], "/a~1b"),
            (&["m~n"], "/m~0n"),
            (&["~1"], "/~01"),
            (&["metadata", "k\"l"], "/metadata/k\"l"),
        ] {
            assert_eq!(printed(names), expected);
        }
        assert_eq!(Pointer::Root.member("a").element(7).to_string(), "/a/7");
    }

    #[test]
    fn a_card_number_or_a_very_long_name_is_never_printed() {
        let long = "n".repeat(NAME_CHARS_MAX + 1);

        assert_eq!(printed(&["metadata", "4111 1111 1111 1111"]), "/metadata");
        assert_eq!(printed(&["4111111111111111", "inner"]), "");
        assert_eq!(printed(&["metadata", &long]), "/metadata");
    }
}
