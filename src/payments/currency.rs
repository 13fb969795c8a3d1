//! The currencies that can be paid in: active ISO 4217 codes whose exponent is known.
//!
//! Refused, although ISO 4217 lists them: fund codes (`BOV`, `CHE`, `CHW`, `CLF`, `COU`, `MXV`,
//! `USN`, `UYI`, `UYW`), which are units that contracts are indexed by and that no payer holds;
//! metals, special drawing rights and bond-market units (`XAU`, `XDR`, `XB…`), which have no minor
//! unit; `XTS` and `XXX`, which are no currency. Withdrawn codes are refused because no gateway
//! settles in them. Case matters: `eur` is refused rather than corrected, so that one currency has
//! one spelling in fingerprints, rows and journals.

use std::fmt;

/// An active ISO 4217 currency.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency {
    iso: iso_currency::Currency,
    exponent: u16,
}

impl Currency {
    /// Reads an upper-case alphabetic code.
    pub fn from_code(code: &str) -> Option<Self> {
        let iso = iso_currency::Currency::from_code(code)?;
        let exponent = iso.exponent()?;
        is_payable(iso).then_some(Self { iso, exponent })
    }

    pub fn code(self) -> &'static str {
        self.iso.code()
    }

    /// How many decimal places the minor unit has: 2 for EUR, 0 for JPY, 3 for KWD.
    pub fn exponent(self) -> u16 {
        self.exponent
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

fn is_payable(iso: iso_currency::Currency) -> bool {
    // Deviates from the crate, which has VES superseded by VED: ISO 4217 lists both as active, and
    // VES is the code that banks and card networks use.
    let withdrawn = iso.is_superseded().is_some() && iso != iso_currency::Currency::VES;
    !withdrawn && !iso.is_fund() && !iso.is_special()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// ISO 4217 list one, active currencies by the number of decimal places.
    const ACTIVE: [(u16, &str); 3] = [
        (
            0,
            "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
        ),
        (
            2,
            "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD \
             CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS \
             GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP \
             LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK \
             NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS \
             SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST \
             XCD XCG YER ZAR ZMW ZWG",
        ),
        (3, "BHD IQD JOD KWD LYD OMR TND"),
    ];

    fn active() -> BTreeMap<String, u16> {
        ACTIVE
            .into_iter()
            .flat_map(|(exponent, codes)| {
                codes
                    .split(' ')
                    .map(move |code| (code.to_owned(), exponent))
            })
            .collect()
    }

    /// Every word of three capital letters.
    fn words() -> impl Iterator<Item = String> {
        ('A'..='Z').flat_map(|first| {
            ('A'..='Z').flat_map(move |second| {
                ('A'..='Z').map(move |third| String::from_iter([first, second, third]))
            })
        })
    }

    #[test]
    fn exactly_the_active_codes_are_accepted_each_with_its_exponent() {
        let accepted: BTreeMap<_, _> = words()
            .filter_map(|word| Some((word.clone(), Currency::from_code(&word)?.exponent())))
            .collect();

        assert_eq!(
            accepted,
            active(),
            "the accepted codes are those of ISO 4217"
        );
    }

    #[test]
    fn codes_that_name_no_money_in_a_purse_are_refused() {
        for code in [
            "BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "UYI", "UYW", "XAD", "XAG", "XAU",
            "XBA", "XBB", "XBC", "XBD", "XDR", "XPD", "XPT", "XSU", "XTS", "XUA", "XXX", "ANG",
            "BGN", "CUC", "DEM", "HRK", "SLL", "ZWL",
        ] {
            assert_eq!(Currency::from_code(code), None, "{code}");
        }
    }

    #[test]
    fn a_code_has_one_spelling() {
        for code in [
            "eur", "Eur", " EUR", "EUR ", "978", "", "EU", "EURO", "\u{20AC}",
        ] {
            assert_eq!(Currency::from_code(code), None, "{code:?}");
        }
    }

    #[test]
    fn a_currency_prints_its_code() {
        let yen = Currency::from_code("JPY").unwrap();

        assert_eq!(
            (yen.to_string(), format!("{yen:?}")),
            ("JPY".into(), "JPY".into())
        );
    }
}
